/* CEL's grammar: text to tree, bounded in nodes and depth. */
#include <string.h>

#include "oidc/cel_internal.h"

#define DEPTH_MAX 48

enum token_kind { TOKEN_END, TOKEN_NUMBER, TOKEN_STRING, TOKEN_IDENT, TOKEN_PUNCT, TOKEN_BAD };

struct token {
    enum token_kind kind;
    struct str text;
    struct cel_value value;
    unsigned at;
};

struct parser {
    struct arena *arena;
    struct str text;
    char *scratch; /* for the string being read */
    size_t pos;
    struct token token;
    size_t nodes;
    unsigned depth;
    const char *error;
};

static void *set_error(struct parser *parser, const char *what)
{
    if (parser->error == NULL) {
        parser->error =
            arena_printf(parser->arena, "%s at character %u", what, parser->token.at + 1);
    }
    return NULL;
}

/* ------------------------------------------------------------------ tokens */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek_at(const struct parser *parser, size_t pos)
{
    if (pos >= parser->text.len) {
        return '\0';
    }
    return parser->text.ptr[pos];
}

static void skip_space(struct parser *parser)
{
    for (;;) {
        char c = peek_at(parser, parser->pos);
        if (parser->pos < parser->text.len && strchr(" \t\r\n\f", c) != NULL && c != '\0') {
            parser->pos++;
        } else if (c == '/' && peek_at(parser, parser->pos + 1) == '/') {
            while (parser->pos < parser->text.len && parser->text.ptr[parser->pos] != '\n') {
                parser->pos++;
            }
        } else {
            return;
        }
    }
}

/* Writes a code point as UTF-8; 0 when it is none. */
static size_t write_utf8(uint32_t code, char out[4])
{
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(lead[len] | code);
    return len;
}

/* The escape after a backslash at *pos; false when there is no such escape. */
static bool read_escape(struct parser *parser, size_t *pos, char out[4], size_t *ret_len)
{
    static const char names[] = "abfnrtv\\'\"`?";
    static const char bytes[] = "\a\b\f\n\r\t\v\\'\"`?";
    char c = peek_at(parser, *pos);
    const char *found = c != '\0' ? strchr(names, c) : NULL;
    uint64_t code = 0;

    (*pos)++;
    if (found != NULL) {
        out[0] = bytes[found - names];
        *ret_len = 1;
        return true;
    }
    size_t digits = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0 || *pos + digits > parser->text.len) {
        return false;
    }
    struct str hex = {parser->text.ptr + *pos, digits};
    if (hex.ptr[1] == 'x' || !str_parse_hex_u64(hex, &code) || code > 0x10ffff) {
        return false;
    }
    *pos += digits;
    *ret_len = write_utf8((uint32_t)code, out);
    return *ret_len > 0;
}

/* A string literal whose opening quote stands at pos; raw leaves backslashes alone. */
static void read_string(struct parser *parser, size_t pos, bool raw)
{
    char quote = parser->text.ptr[pos];
    bool triple = peek_at(parser, pos + 1) == quote && peek_at(parser, pos + 2) == quote;
    size_t width = triple ? 3 : 1;
    char *out = parser->scratch;
    size_t len = 0;

    pos += width;
    while (pos < parser->text.len) {
        char c = parser->text.ptr[pos];
        if (c == quote &&
            (!triple || (peek_at(parser, pos + 1) == quote && peek_at(parser, pos + 2) == quote))) {
            parser->token.kind = TOKEN_STRING;
            parser->token.value =
                cel_text((struct str){arena_strndup(parser->arena, out, len), len});
            parser->pos = pos + width;
            return;
        }
        if (!triple && (c == '\n' || c == '\r')) {
            return;
        }
        pos++;
        if (c != '\\' || raw) {
            out[len++] = c;
        } else {
            size_t added = 0;
            char bytes[4];
            if (!read_escape(parser, &pos, bytes, &added)) {
                return;
            }
            memcpy(out + len, bytes, added);
            len += added;
        }
    }
}

static void read_number(struct parser *parser)
{
    size_t begin = parser->pos;
    size_t end = begin;
    bool real = false;
    bool hex = peek_at(parser, begin) == '0' && (peek_at(parser, begin + 1) | 0x20) == 'x';
    uint64_t whole = 0;
    if (hex) {
        end += 2;
    }
    for (; end < parser->text.len; end++) {
        char c = parser->text.ptr[end];
        bool exponent = !hex && (c | 0x20) == 'e';
        bool sign = (c == '+' || c == '-') && !hex && end > begin &&
                    (parser->text.ptr[end - 1] | 0x20) == 'e';
        bool point = !hex && c == '.' && is_digit(peek_at(parser, end + 1));
        if (!is_digit(c) && !exponent && !sign && !point && !(hex && is_letter(c))) {
            break;
        }
        real = real || exponent || point;
    }
    struct str text = {parser->text.ptr + begin, end - begin};
    struct cel_value value = {.kind = real ? CEL_DOUBLE : CEL_INT};
    bool good = real  ? str_parse_double(text, &value.real)
                : hex ? str_parse_hex_u64(text, &whole) && whole <= INT64_MAX
                      : str_parse_i64(text, 0, INT64_MAX, &value.number);
    if (hex) {
        value.number = (int64_t)whole;
    }
    if (good && !is_letter(peek_at(parser, end))) {
        parser->token.kind = TOKEN_NUMBER;
        parser->token.value = value;
        parser->pos = end;
    }
}

static void next_token(struct parser *parser)
{
    static const char *const pairs[] = {"&&", "||", "==", "!=", "<=", ">=", ".?", "[?"};
    skip_space(parser);
    size_t begin = parser->pos;
    char c = peek_at(parser, begin);
    char after = peek_at(parser, begin + 1);
    parser->token = (struct token){.kind = TOKEN_BAD, .at = (unsigned)begin};
    if (begin >= parser->text.len) {
        parser->token.kind = TOKEN_END;
    } else if (c == '"' || c == '\'') {
        read_string(parser, begin, false);
    } else if ((c == 'r' || c == 'R') && (after == '"' || after == '\'')) {
        read_string(parser, begin + 1, true);
    } else if (is_digit(c) || (c == '.' && is_digit(after))) {
        read_number(parser);
    } else if (is_letter(c)) {
        while (is_letter(peek_at(parser, parser->pos)) || is_digit(peek_at(parser, parser->pos))) {
            parser->pos++;
        }
        parser->token.kind = TOKEN_IDENT;
    } else if (c != '\0' && strchr("()[]{}.,?:<>+-*/%!&|=", c) != NULL) {
        parser->pos++;
        for (size_t i = 0; i < COUNTOF(pairs); i++) {
            if (c == pairs[i][0] && after == pairs[i][1]) {
                parser->pos = begin + 2;
            }
        }
        parser->token.kind = TOKEN_PUNCT;
    }
    if (parser->token.kind == TOKEN_BAD) {
        (void)set_error(parser, "a token that is not understood");
    }
    parser->token.text = (struct str){parser->text.ptr + begin, parser->pos - begin};
}

static bool is_punct(const struct parser *parser, const char *text)
{
    return parser->token.kind == TOKEN_PUNCT && str_eq_c(parser->token.text, text);
}

static bool take_punct(struct parser *parser, const char *text)
{
    if (!is_punct(parser, text)) {
        return false;
    }
    next_token(parser);
    return true;
}

static bool expect_punct(struct parser *parser, const char *text)
{
    if (!take_punct(parser, text)) {
        (void)set_error(parser, arena_printf(parser->arena, "%s is expected", text));
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------ nodes */
static struct cel_node *make_node(struct parser *parser, enum cel_op op, size_t arg_count)
{
    struct cel_node *node = arena_zalloc(parser->arena, sizeof(*node));
    if (++parser->nodes > CEL_NODES_MAX) {
        return set_error(parser, "the expression is too large");
    }
    node->op = op;
    node->at = parser->token.at;
    node->arg_count = arg_count;
    node->args = arena_zalloc(parser->arena, (arg_count + 1) * sizeof(void *));
    return node;
}

static struct cel_node *parse_expression(struct parser *parser);

/* Items up to the closing mark, in the arena; NULL after an error. */
static struct cel_node **parse_items(struct parser *parser, const char *close, bool pairs,
                                     size_t *ret_count)
{
    size_t cap = 8;
    size_t count = 0;
    struct cel_node **items = arena_alloc(parser->arena, cap * sizeof(void *));
    while (!is_punct(parser, close)) {
        if (count + 2 > cap) {
            struct cel_node **more = arena_alloc(parser->arena, 2 * cap * sizeof(void *));
            memcpy(more, items, count * sizeof(void *));
            items = more;
            cap *= 2;
        }
        items[count++] = parse_expression(parser);
        if (pairs && parser->error == NULL && expect_punct(parser, ":")) {
            items[count++] = parse_expression(parser);
        }
        if (parser->error != NULL || (!take_punct(parser, ",") && !is_punct(parser, close))) {
            return set_error(parser, "a comma is expected");
        }
    }
    next_token(parser);
    *ret_count = count;
    return items;
}

static struct cel_node *make_comprehension(struct parser *parser, enum cel_op op,
                                           struct cel_node *range, struct cel_node **args,
                                           size_t count)
{
    bool conditional = op == CEL_OP_MAP && count == 3;
    if ((count != 2 && !conditional) || args[0]->op != CEL_OP_IDENT) {
        return set_error(parser, "a macro wants a variable and an expression");
    }
    struct cel_node *node = make_node(parser, op, conditional ? 3 : 2);
    if (node != NULL) {
        node->name = args[0]->name;
        node->args[0] = range;
        node->args[1] = args[conditional ? 2 : 1];
        if (conditional) {
            node->args[2] = args[1];
        }
    }
    return node;
}

static struct cel_node *make_has(struct parser *parser, struct cel_node **args, size_t count)
{
    if (count != 1 || args[0]->op != CEL_OP_SELECT) {
        return set_error(parser, "has() wants a field selection");
    }
    args[0]->op = CEL_OP_HAS;
    return args[0];
}

/* A call whose opening parenthesis was taken. */
static struct cel_node *parse_call(struct parser *parser, struct str name, struct cel_node *target)
{
    static const struct {
        const char *name;
        enum cel_op op;
    } macros[] = {{"all", CEL_OP_ALL},
                  {"exists", CEL_OP_EXISTS},
                  {"exists_one", CEL_OP_EXISTS_ONE},
                  {"map", CEL_OP_MAP},
                  {"filter", CEL_OP_FILTER}};
    size_t count = 0;
    struct cel_node **args = parse_items(parser, ")", false, &count);
    if (args == NULL) {
        return NULL;
    }
    if (target == NULL && str_eq_c(name, "has")) {
        return make_has(parser, args, count);
    }
    for (size_t i = 0; target != NULL && i < COUNTOF(macros); i++) {
        if (str_eq_c(name, macros[i].name)) {
            return make_comprehension(parser, macros[i].op, target, args, count);
        }
    }
    size_t first = target != NULL;
    struct cel_node *node = make_node(parser, CEL_OP_CALL, first + count);
    if (node != NULL) {
        node->name = name;
        node->receiver = target != NULL;
        node->args[0] = target;
        memcpy(node->args + first, args, count * sizeof(void *));
    }
    return node;
}

static struct cel_node *parse_collection(struct parser *parser, enum cel_op op, const char *close)
{
    size_t count = 0;
    struct cel_node **items = parse_items(parser, close, op == CEL_OP_MAKE_MAP, &count);
    struct cel_node *node = items != NULL ? make_node(parser, op, 0) : NULL;
    if (node != NULL) {
        node->args = items;
        node->arg_count = count;
    }
    return node;
}

static struct cel_node *parse_literal(struct parser *parser, struct cel_value value)
{
    struct cel_node *node = make_node(parser, CEL_OP_LITERAL, 0);
    if (node != NULL) {
        node->value = value;
        next_token(parser);
    }
    return node;
}

static struct cel_node *parse_primary(struct parser *parser)
{
    struct token token = parser->token;
    if (token.kind == TOKEN_NUMBER || token.kind == TOKEN_STRING) {
        return parse_literal(parser, token.value);
    }
    if (take_punct(parser, "(")) {
        struct cel_node *inner = parse_expression(parser);
        return inner != NULL && expect_punct(parser, ")") ? inner : NULL;
    }
    if (take_punct(parser, "[")) {
        return parse_collection(parser, CEL_OP_MAKE_LIST, "]");
    }
    if (take_punct(parser, "{")) {
        return parse_collection(parser, CEL_OP_MAKE_MAP, "}");
    }
    if (token.kind != TOKEN_IDENT || str_eq_c(token.text, "in")) {
        return set_error(parser, "an expression is expected");
    }
    if (str_eq_c(token.text, "true") || str_eq_c(token.text, "false")) {
        return parse_literal(parser,
                             (struct cel_value){.kind = CEL_BOOL, .flag = token.text.len == 4});
    }
    if (str_eq_c(token.text, "null")) {
        return parse_literal(parser, (struct cel_value){.kind = CEL_NULL});
    }
    next_token(parser);
    if (take_punct(parser, "(")) {
        return parse_call(parser, token.text, NULL);
    }
    struct cel_node *node = make_node(parser, CEL_OP_IDENT, 0);
    if (node != NULL) {
        node->name = token.text;
        node->at = token.at;
    }
    return node;
}

/* What follows a dot. */
static struct cel_node *parse_selection(struct parser *parser, struct cel_node *target,
                                        enum cel_op op)
{
    struct token token = parser->token;
    if (token.kind != TOKEN_IDENT) {
        return set_error(parser, "a field is expected");
    }
    next_token(parser);
    if (op == CEL_OP_SELECT && take_punct(parser, "(")) {
        return parse_call(parser, token.text, target);
    }
    struct cel_node *node = make_node(parser, op, 1);
    if (node != NULL) {
        node->name = token.text;
        node->at = token.at;
        node->args[0] = target;
    }
    return node;
}

static struct cel_node *parse_index(struct parser *parser, struct cel_node *target, enum cel_op op)
{
    struct cel_node *index = parse_expression(parser);
    struct cel_node *node =
        index != NULL && expect_punct(parser, "]") ? make_node(parser, op, 2) : NULL;
    if (node != NULL) {
        node->args[0] = target;
        node->args[1] = index;
    }
    return node;
}

static struct cel_node *parse_member(struct parser *parser)
{
    struct cel_node *node = parse_primary(parser);
    while (node != NULL) {
        if (take_punct(parser, ".")) {
            node = parse_selection(parser, node, CEL_OP_SELECT);
        } else if (take_punct(parser, ".?")) {
            node = parse_selection(parser, node, CEL_OP_OPT_SELECT);
        } else if (take_punct(parser, "[?")) {
            node = parse_index(parser, node, CEL_OP_OPT_INDEX);
        } else if (take_punct(parser, "[")) {
            node = parse_index(parser, node, CEL_OP_INDEX);
        } else {
            break;
        }
    }
    return node;
}

static struct cel_node *parse_unary(struct parser *parser)
{
    bool negate = is_punct(parser, "-");
    if (!negate && !is_punct(parser, "!")) {
        return parse_member(parser);
    }
    if (++parser->depth > DEPTH_MAX) {
        return set_error(parser, "the expression is nested too deep");
    }
    struct cel_node *node = make_node(parser, negate ? CEL_OP_NEGATE : CEL_OP_NOT, 1);
    next_token(parser);
    struct cel_node *inner = node != NULL ? parse_unary(parser) : NULL;
    parser->depth--;
    if (inner == NULL) {
        return NULL;
    }
    node->args[0] = inner;
    return node;
}

/* Left-associative operators, loosest first. */
static const struct {
    const char *text;
    enum cel_op op;
    int level;
} operators[] = {
    {"||", CEL_OP_OR, 0}, {"&&", CEL_OP_AND, 1}, {"==", CEL_OP_EQ, 2}, {"!=", CEL_OP_NE, 2},
    {"<", CEL_OP_LT, 2},  {"<=", CEL_OP_LE, 2},  {">", CEL_OP_GT, 2},  {">=", CEL_OP_GE, 2},
    {"in", CEL_OP_IN, 2}, {"+", CEL_OP_ADD, 3},  {"-", CEL_OP_SUB, 3}, {"*", CEL_OP_MUL, 4},
    {"/", CEL_OP_DIV, 4}, {"%", CEL_OP_MOD, 4},
};
#define LEVELS 5

static bool find_operator(const struct parser *parser, int level, enum cel_op *ret_op)
{
    for (size_t i = 0; i < COUNTOF(operators); i++) {
        if (operators[i].level == level && str_eq_c(parser->token.text, operators[i].text) &&
            (parser->token.kind == TOKEN_PUNCT || parser->token.kind == TOKEN_IDENT)) {
            *ret_op = operators[i].op;
            return true;
        }
    }
    return false;
}

static struct cel_node *parse_binary(struct parser *parser, int level)
{
    enum cel_op op;
    struct cel_node *left =
        level + 1 < LEVELS ? parse_binary(parser, level + 1) : parse_unary(parser);
    while (left != NULL && find_operator(parser, level, &op)) {
        struct cel_node *node = make_node(parser, op, 2);
        next_token(parser);
        struct cel_node *right =
            level + 1 < LEVELS ? parse_binary(parser, level + 1) : parse_unary(parser);
        if (node == NULL || right == NULL) {
            return NULL;
        }
        node->args[0] = left;
        node->args[1] = right;
        left = node;
    }
    return left;
}

static struct cel_node *parse_expression(struct parser *parser)
{
    if (++parser->depth > DEPTH_MAX) {
        return set_error(parser, "the expression is nested too deep");
    }
    struct cel_node *node = parse_binary(parser, 0);
    if (node != NULL && is_punct(parser, "?")) {
        struct cel_node *choice = make_node(parser, CEL_OP_COND, 3);
        next_token(parser);
        struct cel_node *yes = choice != NULL ? parse_binary(parser, 0) : NULL;
        struct cel_node *no =
            yes != NULL && expect_punct(parser, ":") ? parse_expression(parser) : NULL;
        if (no == NULL) {
            return NULL;
        }
        choice->args[0] = node;
        choice->args[1] = yes;
        choice->args[2] = no;
        node = choice;
    }
    parser->depth--;
    return parser->error == NULL ? node : NULL;
}

struct cel_node *cel_parse(struct arena *arena, struct str text, const char **ret_error)
{
    struct parser parser = {.arena = arena, .text = text};
    struct cel_node *root = NULL;
    if (text.len > CEL_TEXT_MAX || !str_is_utf8(text)) {
        *ret_error = "an expression is UTF-8 text of at most 8 KiB";
        return NULL;
    }
    parser.scratch = arena_alloc(arena, text.len + 1);
    next_token(&parser);
    if (parser.error == NULL) {
        root = parse_expression(&parser);
    }
    if (root != NULL && parser.token.kind != TOKEN_END) {
        root = set_error(&parser, "the expression should end");
    }
    if (root == NULL) {
        *ret_error = parser.error != NULL ? parser.error : "the expression is not understood";
    }
    return root;
}
