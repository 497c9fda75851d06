"""A browser that signs in at a fake identity provider.

    login = Login(world, idp, groups={"ops": "operator"})      # an issuer of the org; a role of each group
    browser = Browser(login); browser.sign_in()                # as idp.sub; browser.me(), browser.headers
"""
import urllib.parse


class Login:
    def __init__(self, world, idp, **fields):
        self.world, self.idp = world, idp
        self.issuer = world.issuer(**{"enabled": True, **idp.issuer(), **fields})
        self.id = self.issuer["id"]

    def grant(self, group, role):
        """A role in the whole org for all in a group."""
        self.world.sql("INSERT INTO group_grant (org_id, id, issuer_id, group_name, role, created_by)"
                       f" VALUES ('{self.world.org.id}', gen_random_uuid(), '{self.id}', '{group}', '{role}', 'test')")

    def sessions(self):
        return int(self.world.sql("SELECT count(*) FROM session s JOIN login l ON l.org_id = s.login_org AND l.id = s.login_id"
                                  f" WHERE l.issuer_id = '{self.id}'"))


class Browser:
    def __init__(self, login, agent="Test Browser/1.0"):
        self.login, self.server, self.cookies, self.agent = login, login.world.server, {}, agent

    # ------------------------------------------------------------ requests with cookies
    @property
    def headers(self):
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json", "User-Agent": self.agent,
                **({"Cookie": cookie} if cookie else {})}

    def api(self, method, path, json=None):
        answer = self.server.api(method, path, json, token=False, headers=self.headers)
        self.keep(answer)
        return answer

    def keep(self, answer):
        for line in answer.headers.get_list("set-cookie"):
            pair, *attributes = line.split(";")
            name, _, value = pair.partition("=")
            if any(attribute.strip().lower() == "max-age=0" for attribute in attributes):
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value

    # ------------------------------------------------------------ signing in
    def start(self, return_to=None):
        """The address at the issuer that one is sent to."""
        query = "?" + urllib.parse.urlencode({"return_to": return_to}) if return_to is not None else ""
        answer = self.api("GET", f"/auth/sign-in/{self.login.id}{query}")
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def back(self, query):
        return self.api("GET", f"/auth/callback?{query}")

    def sign_in(self, return_to=None, **changes):
        """The answer of the callback."""
        return self.back(self.login.idp.authorize(self.start(return_to), **changes))

    def me(self):
        return self.api("GET", "/api/v1/me")
