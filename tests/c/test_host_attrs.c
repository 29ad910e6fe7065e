/* test_host_attrs.c: the attributes that a host builds are what attrs.h reads. */
#include "test_host_common.h"

static jaxc_host *host;
static jaxc_host_call *call;
static jaxc_host_attrs *attrs;

static void begin(void) {
  host = make_host(0, JAXC_HOST_CPU);
  call = make_call(host);
  attrs = jaxc_host_call_attrs(call);
}

static jaxc_status scalar(jaxc_host_attrs *into, const char *name, int32_t value) {
  return jaxc_host_attrs_scalar(into, name, JAXC_S32, &value, &message);
}

static void check_order(const jaxc_abi_attrs *seen, const char *const *names,
                        int64_t count) {
  CHECK_INT(seen->struct_size, sizeof *seen);
  CHECK_INT(seen->size, count);
  for (int64_t i = 0; i < count; i++) {
    CHECK_INT(seen->names[i]->len, strlen(names[i]));
    CHECK(memcmp(seen->names[i]->ptr, names[i], strlen(names[i])) == 0);
  }
}

static jaxc_abi_error *see_order(jaxc_abi_call_frame *frame) {
  static const char *const outer[] = {"A", "B", "a", "aa", "ab", "\xc3\xa4"};
  static const char *const inner[] = {"", "x", "y"};
  const jaxc_abi_attrs *nested;
  check_order(&frame->attrs, outer, 6);
  CHECK_INT(jaxc_attrs_dictionary(&frame->attrs, "B", &nested, NULL), JAXC_OK);
  check_order(nested, inner, 3);
  return NULL;
}

TEST(names_are_sorted_bytewise_at_every_level) {
  jaxc_host_attrs *inner;
  begin();
  CHECK_INT(scalar(attrs, "\xc3\xa4", 1), JAXC_OK);
  CHECK_INT(scalar(attrs, "aa", 1), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_dictionary(attrs, "B", &inner, &message), JAXC_OK);
  CHECK_INT(scalar(inner, "y", 1), JAXC_OK);
  CHECK_INT(scalar(attrs, "a", 1), JAXC_OK);
  CHECK_INT(scalar(attrs, "ab", 1), JAXC_OK);
  CHECK_INT(scalar(inner, "", 1), JAXC_OK);
  CHECK_INT(scalar(attrs, "A", 1), JAXC_OK);
  CHECK_INT(scalar(inner, "x", 1), JAXC_OK);
  act = see_order;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(stage_calls[JAXC_STAGE_EXECUTE], 1);
  end(host, call);
}

static jaxc_abi_error *see_values(jaxc_abi_call_frame *frame) {
  const jaxc_abi_attrs *const seen = &frame->attrs;
  double _Complex z;
  int32_t n;
  _Bool flag;
  jaxc_string text;
  jaxc_array list;
  CHECK_INT(jaxc_attrs_scalar(seen, "n", JAXC_S32, &n, NULL), JAXC_OK);
  CHECK_INT(n, -7);
  CHECK_INT(jaxc_attrs_scalar(seen, "flag", JAXC_PRED, &flag, NULL), JAXC_OK);
  CHECK_INT(flag, 1);
  CHECK_INT(jaxc_attrs_scalar(seen, "z", JAXC_C128, &z, NULL), JAXC_OK);
  CHECK(((double *)&z)[1] == 2.5);
  CHECK_INT(jaxc_attrs_string(seen, "text", &text, NULL), JAXC_OK);
  CHECK_INT(text.len, 5);
  CHECK(memcmp(text.ptr, "a\0bcd", 5) == 0);
  CHECK_INT(jaxc_attrs_array(seen, "list", JAXC_F64, &list, NULL), JAXC_OK);
  CHECK_INT(list.size, 2);
  CHECK(((const double *)list.data)[1] == 0.25);
  CHECK_INT(jaxc_attrs_array(seen, "none", JAXC_S8, &list, NULL), JAXC_OK);
  CHECK_INT(list.size, 0);
  CHECK_INT(jaxc_attrs_string(seen, "blank", &text, NULL), JAXC_OK);
  CHECK_INT(text.len, 0);
  return NULL;
}

TEST(values_are_copied_and_arrive) {
  double list[2] = {4, 0.25};
  double z[2] = {1, 2.5};
  char text[5] = {'a', 0, 'b', 'c', 'd'};
  const _Bool flag = 1;
  begin();
  CHECK_INT(scalar(attrs, "n", -7), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_scalar(attrs, "flag", JAXC_PRED, &flag, &message), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_scalar(attrs, "z", JAXC_C128, z, &message), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_string(attrs, "text", text, 5, &message), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_array(attrs, "list", JAXC_F64, 2, list, &message), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_array(attrs, "none", JAXC_S8, 0, NULL, &message), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_string(attrs, "blank", NULL, 0, &message), JAXC_OK);
  memset(list, 0, sizeof list);
  memset(z, 0, sizeof z);
  memset(text, 0, sizeof text);
  act = see_values;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK); /* each frame is new */
  end(host, call);
}

TEST(a_name_is_there_once) {
  jaxc_host_attrs *inner;
  begin();
  CHECK_INT(scalar(attrs, "n", 1), JAXC_OK);
  CHECK_INT(jaxc_host_attrs_dictionary(attrs, "n", &inner, &message), JAXC_ALREADY_EXISTS);
  CHECK_TEXT(message.text, "attribute 'n' is there already");
  CHECK(inner == NULL);
  end(host, call);
}

TEST(a_dtype_that_no_attribute_has_is_refused) {
  const uint16_t half = 0;
  begin();
  CHECK_INT(jaxc_host_attrs_scalar(attrs, "h", JAXC_F16, &half, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "attribute 'h' cannot be a scalar of float16 (type 10)");
  CHECK_INT(jaxc_host_attrs_array(attrs, "b", JAXC_PRED, 1, &half, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "attribute 'b' cannot be an array of bool (type 1)");
  CHECK_INT(jaxc_host_attrs_scalar(attrs, "u", 99, &half, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "attribute 'u' cannot be a scalar of unknown (type 99)");
  end(host, call);
}

TEST(null_names_and_values_are_refused) {
  begin();
  CHECK_INT(scalar(attrs, NULL, 1), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "the attribute's name is NULL");
  CHECK_INT(scalar(NULL, "n", 1), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "the dictionary is NULL");
  CHECK_INT(jaxc_host_attrs_string(attrs, "t", NULL, 3, &message), JAXC_INVALID_ARGUMENT);
  CHECK_TEXT(message.text, "the value of attribute 't' is NULL");
  end(host, call);
}

TEST(an_array_whose_bytes_overflow_is_refused) {
  const double one = 1;
  begin();
  CHECK_INT(jaxc_host_attrs_array(attrs, "a", JAXC_F64, SIZE_MAX / 4, &one, &message),
            JAXC_INVALID_ARGUMENT);
  CHECK(strstr(message.text, "attribute 'a' has an impossible size of ") != NULL);
  end(host, call);
}

TEST(nothing_is_added_after_instantiate) {
  jaxc_host_attrs *inner;
  begin();
  CHECK_INT(jaxc_host_attrs_dictionary(attrs, "d", &inner, &message), JAXC_OK);
  CHECK_INT(jaxc_host_call_instantiate(call, &message), JAXC_OK);
  CHECK_INT(scalar(attrs, "n", 1), JAXC_FAILED_PRECONDITION);
  CHECK_TEXT(message.text, "attribute 'n' comes after the call was instantiated");
  CHECK_INT(scalar(inner, "n", 1), JAXC_FAILED_PRECONDITION);
  end(host, call);
}

static jaxc_abi_error *see_options(jaxc_abi_call_frame *frame) {
  jaxc_abi_options_args args = {JAXC_ABI_SIZE(jaxc_abi_options_args, attrs), NULL,
                                frame->context, NULL};
  int32_t level = 0;
  CHECK(frame->api->options(&args) == NULL);
  if (frame->stage == JAXC_STAGE_INSTANTIATE) {
    CHECK_INT(args.attrs->size, 0);
    CHECK_INT(args.attrs->struct_size, sizeof *args.attrs);
  } else {
    CHECK_INT(jaxc_attrs_scalar(args.attrs, "level", JAXC_S32, &level, NULL), JAXC_OK);
    CHECK_INT(level, 3);
  }
  return NULL;
}

TEST(custom_options_reach_executions) {
  begin();
  CHECK_INT(scalar(jaxc_host_custom_options(host), "level", 3), JAXC_OK);
  act = see_options;
  only_stage = -1;
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK);
  CHECK_INT(stage_calls[JAXC_STAGE_INSTANTIATE], 1);
  CHECK_INT(stage_calls[JAXC_STAGE_EXECUTE], 1);
  end(host, call);
}

TEST_MAIN
