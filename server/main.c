/* musterd: the server's subcommands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "db/db.h"
#include "server/audit_command.h"
#include "server/command_key.h"
#include "server/config.h"
#include "server/data_key_command.h"
#include "server/init.h"
#include "server/key_command.h"
#include "server/perms.h"
#include "server/platform_admin.h"
#include "server/repair/executors/targets.h"
#include "server/request.h"
#include "server/restore.h"
#include "server/serve.h"
#include "server/sign_in_link.h"

#define ERROR_MAX 512
#define EXIT_USAGE 2

static const char usage[] =
    "musterd, the server of Muster\n"
    "\n"
    "  musterd serve                      serve until SIGTERM or SIGINT\n"
    "  musterd migrate [--maintain]       bring the database to this version; --maintain: only "
    "make\n"
    "                                     the partitions of the coming days\n"
    "  musterd migrate --after-restore    once, after a backup was restored and before serving: "
    "no old\n"
    "                                     order can act, and open repairs are unknown\n"
    "  musterd init --org NAME --project NAME --cluster NAME --admin-token FILE [--admin NAME]\n"
    "               [--demo-token FILE] [--healthy-delay SECONDS]\n"
    "                                     make the first organization; again: changes nothing\n"
    "  musterd sign-in-link --user NAME   print a link that signs a person in once, for 10 "
    "minutes\n"
    "  musterd platform-admin --user NAME [--revoke]\n"
    "                                     a person may make organizations, or no longer\n"
    "  musterd audit verify [--org NAME] [--heads FILE]\n"
    "                                     check the audit logs; names the first bad row\n"
    "  musterd audit head [--org NAME]    print the signed heads of the audit logs, to keep "
    "elsewhere\n"
    "  musterd key list [--cluster C]     print the keys that sign the clusters' commands\n"
    "  musterd key rotate --cluster C [--finish]\n"
    "                                     give a cluster's command key a successor; --finish: "
    "retire the\n"
    "                                     former one now\n"
    "  musterd key rotate-master          a new master.key for the secrets in the database, while "
    "servers\n"
    "                                     serve; once more when it was cut off\n"
    "  musterd key rotate-data [--org NAME]\n"
    "                                     the next data key of one organization, or of each, while "
    "servers\n"
    "                                     serve; once more when it was cut off\n"
    "  musterd check-config               print the settings in effect, secrets masked\n"
    "  musterd routes                     print the operations, one JSON object a line\n"
    "  musterd version | help\n"
    "\n"
    "Settings come from --config FILE (default /etc/muster/musterd.conf), then from MUSTER_<KEY> "
    "in\n"
    "the environment, then from --<key> VALUE. `musterd check-config` lists them all.\n";

static int refuse(const char *sentence)
{
    (void)fprintf(stderr, "musterd: %s\n", sentence);
    return EXIT_USAGE;
}

/* Takes "--name VALUE" or "--name=VALUE" out of argv. NULL when it is absent; "" when it has no
 * value. */
static const char *take_option(int *argc, char **argv, const char *name)
{
    const char *value = NULL;
    size_t len = strlen(name);
    int kept = 0;
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            value = i + 1 < *argc ? argv[++i] : "";
        } else if (strncmp(argv[i], name, len) == 0 && argv[i][len] == '=') {
            value = argv[i] + len + 1;
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
    return value;
}

static bool take_flag(int *argc, char **argv, const char *name)
{
    bool found = false;
    int kept = 0;
    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            found = true;
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
    return found;
}

/* Reads the settings and sets up the log; 0, or the exit status. */
static int set_up(int argc, char **argv)
{
    char error[ERROR_MAX];
    enum log_level level = LOG_INFO;
    if (!config_read(argc, argv, error, sizeof(error))) {
        return refuse(error);
    }
    if (!log_level_parse(config.log_level, &level)) {
        return refuse("log_level is not known");
    }
    log_setup("musterd", level, config.log_json && !isatty(STDERR_FILENO));
    return 0;
}

/* What the settings name beside themselves. */
static int read_targets(void)
{
    char error[ERROR_MAX];

    return targets_read(config.executors_file, error, sizeof(error)) ? 0 : refuse(error);
}

static int run_serve(int argc, char **argv)
{
    int failed = set_up(argc, argv);

    failed = failed != 0 ? failed : read_targets();
    return failed != 0 ? failed : serve_run();
}

/* The function in the database runs as its owner; the loop role may call it. */
static enum err make_partitions(char *error, size_t error_cap)
{
    const struct db_args none = {0};
    struct db_rows *rows = NULL;
    struct db_conn *conn = db_conn_new(DB_LOOP);
    enum err err = db_exec(conn, SQL_PARTITIONS_MAKE, NULL, &none, &rows);
    if (err != ERR_NONE) {
        (void)snprintf(error, error_cap, "partitions could not be made: %s", db_conn_error(conn));
    } else {
        log_info("%lld partitions were made",
                 (long long)db_i64(rows, 0, db_rows_col(rows, "made")));
    }
    db_rows_free(rows);
    db_conn_free(conn);
    return err;
}

static int run_migrate(int argc, char **argv)
{
    char error[ERROR_MAX] = "";
    bool maintain = take_flag(&argc, argv, "--maintain");
    bool restored = take_flag(&argc, argv, "--after-restore");
    int failed = set_up(argc, argv);
    if (failed != 0) {
        return failed;
    }
    serve_setup_database();
    int applied = 0;
    enum err err = maintain ? make_partitions(error, sizeof(error))
                            : db_migrate(&applied, error, sizeof(error));
    if (err != ERR_NONE) {
        log_error("%s", error);
        return 1;
    }
    if (!maintain) {
        log_info("%d migrations were applied", applied);
    }
    if (restored && restore_run(error, sizeof(error)) != ERR_NONE) {
        log_error("%s", error);
        return 1;
    }
    return 0;
}

static int run_init(int argc, char **argv)
{
    const char *demo_token = take_option(&argc, argv, "--demo-token");
    const char *delay = take_option(&argc, argv, "--healthy-delay");
    const char *admin = take_option(&argc, argv, "--admin");
    struct init_options options = {
        .org = take_option(&argc, argv, "--org"),
        .project = take_option(&argc, argv, "--project"),
        .cluster = take_option(&argc, argv, "--cluster"),
        .token_file = take_option(&argc, argv, "--admin-token"),
        .admin = admin != NULL ? admin : "admin",
        .healthy_delay_seconds = 600,
    };
    char error[ERROR_MAX] = "";
    if (options.org == NULL || options.project == NULL || options.cluster == NULL ||
        options.token_file == NULL) {
        return refuse("init needs --org, --project, --cluster and --admin-token; see musterd help");
    }
    if (!str_is_dns_label(str_of(options.org)) || !str_is_dns_label(str_of(options.project)) ||
        !str_is_dns_label(str_of(options.cluster))) {
        return refuse("names of org, project and cluster have lower-case letters, digits and -");
    }
    if (delay != NULL && !str_parse_i64(str_of(delay), 0, 86400, &options.healthy_delay_seconds)) {
        return refuse("--healthy-delay takes 0 to 86400 seconds");
    }
    int failed = set_up(argc, argv);
    if (failed != 0) {
        return failed;
    }
    serve_setup_database();
    enum err err = init_run(&options, error, sizeof(error));
    if (err == ERR_NONE && demo_token != NULL) {
        options.org = "demo";
        options.cluster = "demo";
        options.token_file = demo_token;
        options.demo = true;
        err = init_run(&options, error, sizeof(error));
    }
    if (err != ERR_NONE) {
        log_error("%s", error);
        return 1;
    }
    return 0;
}

static int run_platform_admin(int argc, char **argv)
{
    const char *user = take_option(&argc, argv, "--user");
    bool revoke = take_flag(&argc, argv, "--revoke");
    char error[ERROR_MAX] = "";
    if (user == NULL || user[0] == '\0') {
        return refuse("platform-admin needs --user NAME");
    }
    int failed = set_up(argc, argv);
    if (failed != 0) {
        return failed;
    }
    serve_setup_database();
    if (platform_admin_set(user, !revoke, error, sizeof(error)) != ERR_NONE) {
        log_error("%s", error);
        return 1;
    }
    return 0;
}

static int run_sign_in_link(int argc, char **argv)
{
    const char *user = take_option(&argc, argv, "--user");
    char error[ERROR_MAX] = "";
    char link[1024];
    if (user == NULL || user[0] == '\0') {
        return refuse("sign-in-link needs --user NAME");
    }
    int failed = set_up(argc, argv);
    if (failed != 0) {
        return failed;
    }
    serve_setup_database();
    if (sign_in_link_make(user, link, sizeof(link), error, sizeof(error)) != ERR_NONE) {
        log_error("%s", error);
        return 1;
    }
    (void)printf("%s\n", link);
    return 0;
}

static int run_audit(int argc, char **argv)
{
    const char *org = take_option(&argc, argv, "--org");
    const char *heads = take_option(&argc, argv, "--heads");
    bool verify = argc > 0 && strcmp(argv[0], "verify") == 0;
    if (!verify && (argc == 0 || strcmp(argv[0], "head") != 0 || heads != NULL)) {
        return refuse("audit takes verify or head; see musterd help");
    }
    int failed = set_up(argc - 1, argv + 1);
    if (failed != 0) {
        return failed;
    }
    serve_setup_database();
    return (verify ? audit_verify(org, heads) : audit_print_heads(org)) ? 0 : 1;
}

static int run_key(int argc, char **argv)
{
    const char *cluster = take_option(&argc, argv, "--cluster");
    bool finish = take_flag(&argc, argv, "--finish");
    const char *verb = argc > 0 ? argv[0] : "";
    bool list = strcmp(verb, "list") == 0;
    bool rotate = strcmp(verb, "rotate") == 0;
    bool data = strcmp(verb, "rotate-data") == 0;
    const char *org = data ? take_option(&argc, argv, "--org") : NULL;
    if ((!list && !rotate && !data && strcmp(verb, "rotate-master") != 0) || (finish && !rotate)) {
        return refuse("key takes list, rotate, rotate-master or rotate-data; see musterd help");
    }
    if (rotate && (cluster == NULL || cluster[0] == '\0')) {
        return refuse("key rotate needs --cluster NAME or its id");
    }
    int failed = set_up(argc - 1, argv + 1);
    if (failed != 0) {
        return failed;
    }
    serve_setup_database();
    bool good = list     ? command_key_print(cluster)
                : rotate ? command_key_rotate(cluster, finish)
                : data   ? data_key_rotate(org)
                         : key_rotate_master();
    return good ? 0 : 1;
}

static int run_check_config(int argc, char **argv)
{
    CLEANUP(buf_free) struct buf text = {0};
    int failed = set_up(argc, argv);
    failed = failed != 0 ? failed : read_targets();
    if (failed != 0) {
        return failed;
    }
    config_show(config_keys, config_keys_count, &text);
    (void)fputs(text.ptr, stdout);
    return 0;
}

static const char *permission_of(unsigned perm)
{
    for (int bit = 0; bit < PERM_COUNT; bit++) {
        if (perm == 1u << bit) {
            return perm_name((enum perm_bit)bit);
        }
    }
    return "public";
}

static int run_routes(int argc, char **argv)
{
    (void)argv;
    if (argc > 0) {
        return refuse("routes takes no options");
    }
    for (size_t i = 0; i < routes_count; i++) {
        (void)printf(
            "{\"method\":\"%s\",\"path\":\"%s\",\"operation\":\"%s\",\"permission\":\"%s\","
            "\"success\":%d}\n",
            routes[i].method, routes[i].path, routes[i].operation, permission_of(routes[i].perm),
            routes[i].success);
    }
    return 0;
}

static int run_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)printf("musterd %s\n", MUSTER_VERSION);
    return 0;
}

static int run_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)fputs(usage, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {
        {"serve", run_serve},
        {"migrate", run_migrate},
        {"init", run_init},
        {"sign-in-link", run_sign_in_link},
        {"platform-admin", run_platform_admin},
        {"audit", run_audit},
        {"key", run_key},
        {"check-config", run_check_config},
        {"routes", run_routes},
        {"version", run_version},
        {"--version", run_version},
        {"help", run_help},
        {"--help", run_help},
        {"-h", run_help},
    };
    if (argc < 2) {
        (void)fputs(usage, stderr);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < COUNTOF(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 2, argv + 2);
        }
    }
    (void)fprintf(stderr, "musterd: there is no command \"%.40s\"; see musterd help\n", argv[1]);
    return EXIT_USAGE;
}
