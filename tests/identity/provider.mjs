/* An oidc-provider (panva) that a test drives: TLS on a free port, people and clients as told, keys that rotate, outages.
   One JSON object a line: what it is told on standard input, what it answers on standard output. */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createInterface } from 'node:readline';

import Provider from 'oidc-provider';

const [certificate, key] = process.argv.slice(2);
const state = { keys: [], user: 'nobody', users: {}, clients: [], lives: {}, down: false, calls: {}, provider: null };
const store = new Map();

/* What a provider keeps, outliving its keys. */
class Adapter {
  constructor(name) { this.name = name; }
  key(id) { return `${this.name}:${id}`; }
  async upsert(id, payload) { store.set(this.key(id), payload); }
  async find(id) { return store.get(this.key(id)); }
  async findByUid(uid) { return [...store.values()].find((p) => p.uid === uid); }
  async findByUserCode(code) { return [...store.values()].find((p) => p.userCode === code); }
  async consume(id) { store.get(this.key(id)).consumed = Math.floor(Date.now() / 1000); }
  async destroy(id) { store.delete(this.key(id)); }
  async revokeByGrantId(grant) { for (const [k, p] of store) if (p.grantId === grant) store.delete(k); }
}

function addKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  state.keys.unshift({ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: randomUUID() });
}

const life = (kind, usual) => () => state.lives[kind] ?? usual;

function configuration() {
  return {
    adapter: Adapter,
    clients: state.clients,
    jwks: { keys: state.keys },
    cookies: { keys: ['tests'] },
    conformIdTokenClaims: false,
    claims: { openid: ['sub', 'sid'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true }, rpInitiatedLogout: {
      enabled: true,
      logoutSource: (ctx, form) => { ctx.body = form; },
    } },
    findAccount: (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id, ...state.users[id] }) }),
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    loadExistingGrant: async (ctx) => {
      const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope('openid offline_access profile email');
      await grant.save();
      return grant;
    },
    ttl: { AccessToken: life('access', 300), IdToken: life('id', 300), RefreshToken: 86400, Session: 86400, Grant: 86400, Interaction: 600 },
    /* Its own guard knows no loopback; Muster is there in the tests. */
    fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
    responseTypes: ['code'],
    clientBasedCORS: () => false,
  };
}

function build() {
  state.provider = new Provider(state.issuer, configuration());
  state.provider.on('server_error', (ctx, error) => console.error('server_error', error));
  state.provider.on('backchannel.error', (ctx, error) => console.error('backchannel.error', error));
  state.callback = state.provider.callback();
}

/* Whoever is told signs in at once: no form. */
async function interact(request, response) {
  const { prompt } = await state.provider.interactionDetails(request, response);
  if (prompt.name !== 'login') throw new Error(`an interaction for ${prompt.name}`);
  await state.provider.interactionFinished(request, response, { login: { accountId: state.user } }, { mergeWithLastSubmission: false });
}

const server = createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
  const path = request.url.split('?')[0];
  state.calls[path] = (state.calls[path] ?? 0) + 1;
  if (path.startsWith('/interaction/')) {
    interact(request, response).catch((error) => { console.error(error); response.writeHead(500).end(); });
  } else {
    state.callback(request, response);
  }
});
server.on('connection', (socket) => { if (state.down) socket.destroy(); });

const commands = {
  configure: ({ clients, users, user, lives }) => {
    Object.assign(state, { ...(clients && { clients }), ...(users && { users }), ...(user && { user }), ...(lives && { lives }) });
    if (clients) build();
  },
  rotate: ({ keep }) => {
    addKey();
    if (!keep) state.keys.length = 1;
    build();
  },
  down: ({ value }) => {
    state.down = value;
    if (value) server.closeAllConnections();
  },
  calls: () => state.calls,
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { command, ...given } = JSON.parse(line);
  console.log(JSON.stringify({ ok: commands[command](given) ?? true }));
}).on('close', () => process.exit(0));

addKey();
server.listen(0, '127.0.0.1', () => {
  state.issuer = `https://localhost:${server.address().port}`;
  build();
  console.log(JSON.stringify({ issuer: state.issuer }));
});
