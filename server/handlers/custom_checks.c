/* Handlers of an org's own checks: what a definition says is checked here, the rest is SQL's. */
#include "server/handlers/custom_checks.h"

#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "base/json.h"
#include "server/bind.h"
#include "server/fields_custom.h"

#define INTERVAL_DEFAULT_S 300
#define TIMEOUT_DEFAULT_S 10
#define OUTPUT_DEFAULT 4096
#define LOOKS_DEFAULT 2
#define FOR_DEFAULT_S 60

/* ------------------------------------------------------------------ definitions */

/* The errors of a definition as those of the body it lies in. */
static void take_errors(struct request *rq, const struct decode_errors *inner)
{
    for (size_t i = 0; i < inner->count; i++) {
        const struct field_error *e = &inner->items[i];
        const char *pointer = e->pointer != NULL && e->pointer[0] == '#' ? e->pointer + 1 : "";
        decode_error_add(rq->arena, &rq->errors, arena_printf(rq->arena, "#/definition%s", pointer),
                         e->code, e->detail);
    }
}

static void add_error(struct request *rq, const char *pointer, const char *detail)
{
    decode_error_add(rq->arena, &rq->errors, pointer, "not_allowed", detail);
}

static bool decode_part(struct request *rq, struct str text, const struct field *fields, void *out)
{
    struct decode_errors inner = {0};
    const char *detail = NULL;

    if (decode_body(rq->arena, text, fields, out, &inner, &detail) == 0) {
        return true;
    }
    take_errors(rq, &inner);
    if (inner.count == 0) {
        add_error(rq, "#/definition", "It cannot be read.");
    }
    return false;
}

static bool read_metric(struct request *rq, struct str text, struct metric_definition *ret_metric)
{
    if (!decode_part(rq, text, metric_definition_fields, ret_metric)) {
        return false;
    }
    bool above = str_eq_c(ret_metric->comparison, "above");

    if (!ret_metric->has_clear_threshold) {
        ret_metric->clear_threshold = ret_metric->threshold;
    }
    if (above ? ret_metric->clear_threshold > ret_metric->threshold
              : ret_metric->clear_threshold < ret_metric->threshold) {
        add_error(rq, "#/definition/clear_threshold",
                  "It must be on the good side of the threshold, or equal to it.");
        return false;
    }
    if (!ret_metric->has_for_seconds) {
        ret_metric->for_seconds = FOR_DEFAULT_S;
    }
    return true;
}

static void write_metric(const struct metric_definition *metric, struct enc *enc)
{
    enc_key(enc, "metric");
    enc_str(enc, metric->metric);
    enc_key(enc, "comparison");
    enc_str(enc, metric->comparison);
    enc_key(enc, "threshold");
    enc_double_exact(enc, metric->threshold);
    enc_key(enc, "clear_threshold");
    enc_double_exact(enc, metric->clear_threshold);
    enc_key(enc, "for_seconds");
    enc_i64(enc, metric->for_seconds);
}

static bool is_user_name(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.')) {
            return false;
        }
    }
    return text.len > 0;
}

static bool read_command(struct request *rq, struct str text, struct command_definition *in)
{
    if (!decode_part(rq, text, command_definition_fields, in)) {
        return false;
    }
    size_t before = rq->errors.count;

    if (in->has_argv == in->has_script) {
        add_error(rq, "#/definition/argv", "Give either argv or script.");
    } else if (in->has_argv && (in->argv.items[0].len < 2 || in->argv.items[0].ptr[0] != '/')) {
        add_error(rq, "#/definition/argv", "The first word is the absolute path of a program.");
    }
    for (size_t i = 0; in->has_argv && i < in->argv.count; i++) {
        if (in->argv.items[i].len > 1024) {
            add_error(rq, "#/definition/argv", "A word has at most 1,024 bytes.");
            break;
        }
    }
    if (in->has_user && !is_user_name(in->user)) {
        add_error(rq, "#/definition/user", "It must be the name of a user of the node.");
    }
    in->user = in->has_user ? in->user : STR("nobody");
    in->interval_seconds = in->has_interval_seconds ? in->interval_seconds : INTERVAL_DEFAULT_S;
    in->timeout_seconds = in->has_timeout_seconds ? in->timeout_seconds : TIMEOUT_DEFAULT_S;
    in->output_bytes = in->has_output_bytes ? in->output_bytes : OUTPUT_DEFAULT;
    in->raise_after = in->has_raise_after ? in->raise_after : LOOKS_DEFAULT;
    in->clear_after = in->has_clear_after ? in->clear_after : LOOKS_DEFAULT;
    if (in->timeout_seconds > in->interval_seconds) {
        add_error(rq, "#/definition/timeout_seconds", "It may not be longer than the interval.");
    }
    return rq->errors.count == before;
}

static void write_command(const struct command_definition *command, struct enc *enc)
{
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        {"interval_seconds", command->interval_seconds},
        {"timeout_seconds", command->timeout_seconds},
        {"output_bytes", command->output_bytes},
        {"raise_after", command->raise_after},
        {"clear_after", command->clear_after},
    };

    if (command->has_argv) {
        enc_key(enc, "argv");
        enc_arr(enc);
        for (size_t i = 0; i < command->argv.count; i++) {
            enc_str(enc, command->argv.items[i]);
        }
        enc_arr_end(enc);
    } else {
        enc_key(enc, "script");
        enc_str(enc, command->script);
    }
    enc_key(enc, "user");
    enc_str(enc, command->user);
    for (size_t i = 0; i < COUNTOF(numbers); i++) {
        enc_key(enc, numbers[i].key);
        enc_i64(enc, numbers[i].value);
    }
}

/* What has a member "metric" is meant as one: its errors are those that help. */
static bool has_metric(struct str text)
{
    struct json_reader reader;
    enum json_type type;
    struct str key;

    json_open(&reader, text);
    if (json_next(&reader, NULL) != JSON_OBJ) {
        return false;
    }
    while ((type = json_next(&reader, &key)) != JSON_END && type != JSON_ERROR) {
        if (str_eq_c(key, "metric")) {
            return true;
        }
        if ((type == JSON_OBJ || type == JSON_ARR) && !json_skip(&reader)) {
            return false;
        }
    }
    return false;
}

/* Replaces the definition by its full form, with every default written out. */
static enum err complete(struct request *rq, struct custom_check_in *in)
{
    struct command_definition command = {0};
    struct metric_definition metric = {0};
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    bool is_metric = has_metric(in->definition);

    if (is_metric ? !read_metric(rq, in->definition, &metric)
                  : !read_command(rq, in->definition, &command)) {
        return fail(rq, ERR_INVALID_FIELDS, "The definition of the check is not right.");
    }
    enc_init(&enc, &text);
    enc_obj(&enc);
    if (is_metric) {
        write_metric(&metric, &enc);
    } else {
        write_command(&command, &enc);
    }
    enc_obj_end(&enc);
    in->definition = (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len};
    return ERR_NONE;
}

/* ------------------------------------------------------------------ handlers */

static struct custom_check_in *body_of(struct request *rq)
{
    /* The router decoded it into the arena for this request alone. */
    void *own;
    memcpy(&own, &rq->in, sizeof own);
    return own;
}

static enum err run(struct request *rq, enum sql_id sql)
{
    struct custom_check_in *in = body_of(rq);
    struct db_args args = {0};

    if (in->has_definition) {
        enum err err = complete(rq, in);
        if (err != ERR_NONE) {
            return err;
        }
    }
    bind_route_args(rq, NULL, &args);
    return request_query(rq, sql, true, &args, NULL);
}

enum err custom_check_create(struct request *rq)
{
    return run(rq, SQL_CUSTOM_CHECK_CREATE);
}

enum err custom_check_update(struct request *rq)
{
    return run(rq, SQL_CUSTOM_CHECK_UPDATE);
}

/* What the history keeps, and in which units. */
static bool kept_as(struct str metric, double *ret_factor)
{
    static const struct {
        const char *metric;
        double factor;
    } kept[] = {{"gpu_util", 1}, {"gpu_mem_ratio", 1000}, {"cpu_ratio", 1000}};

    for (size_t i = 0; i < COUNTOF(kept); i++) {
        if (str_eq_c(metric, kept[i].metric)) {
            *ret_factor = kept[i].factor;
            return true;
        }
    }
    return false;
}

enum err custom_check_try(struct request *rq)
{
    struct custom_check_in *in = body_of(rq);
    struct metric_definition metric = {0};
    struct db_args args = {0};
    double factor = 1;

    if (!has_metric(in->definition)) {
        add_error(rq, "#/definition/metric",
                  "Only a metric check can be tried on what was stored.");
        return fail(rq, ERR_INVALID_FIELDS, "Only a metric check can be tried.");
    }
    if (!read_metric(rq, in->definition, &metric)) {
        return fail(rq, ERR_INVALID_FIELDS, "The definition of the check is not right.");
    }
    if (!kept_as(metric.metric, &factor)) {
        add_error(
            rq, "#/definition/metric",
            "Of this metric no history is kept; gpu_util, gpu_mem_ratio and cpu_ratio have one.");
        return fail(rq, ERR_INVALID_FIELDS, "Of this metric no history is kept.");
    }
    db_arg_str(&args, rq->arena, in->has_cluster_id ? in->cluster_id : (struct str){0});
    db_arg_str(&args, rq->arena, in->has_gpu_type ? in->gpu_type : (struct str){0});
    db_arg_str(&args, rq->arena, metric.metric);
    db_arg_bool(&args, str_eq_c(metric.comparison, "above"));
    db_arg(&args, arena_printf(rq->arena, "%.6f", metric.threshold * factor));
    db_arg_i64(&args, rq->arena, metric.for_seconds);
    return request_query(rq, SQL_CUSTOM_CHECK_TRY, false, &args, NULL);
}
