/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* messages_code: clients' code, from its image to its compilation. Part of the table in
 * common/messages.h. */
#ifndef GPUSHARE_COMMON_MESSAGES_CODE_H
#define GPUSHARE_COMMON_MESSAGES_CODE_H

/* clang-format off */
#define MESSAGES_CODE(X) \
    X(image_not_memfd, INVALID_IMAGE, \
      "the image must come in a memory file (memfd_create)") \
    X(image_file_short, INVALID_IMAGE, \
      "the image's file is shorter than the message says") \
    X(image_copy, SERVER_RESOURCES, \
      "the server could not copy the image") \
    X(image_memory_over_limit, OUT_OF_MEMORY, \
      "%s: %s of %s are in use: unload modules") \
    X(fatbin_no_memory, SERVER_RESOURCES, \
      "no memory for the fatbin's contents") \
    X(fatbin_too_large, SERVER_RESOURCES, \
      "the fatbin's contents unpack to %s, and one load may have %s of the server's " \
      "memory: split the module, or give gpushared a larger --image-memory") \
    X(cubin_damaged, INVALID_IMAGE, \
      "the cubin is damaged: it is no ELF file that has all its sections") \
    X(fatbin_damaged, INVALID_IMAGE, \
      "the fatbin is damaged") \
    X(fatbin_no_binary, NO_BINARY_FOR_GPU, \
      "the fatbin has neither PTX nor a cubin for compute capability %u.%u: " \
      "compile it for that one, or as PTX for an older one") \
    X(ptx_zero_byte, INVALID_PTX, \
      "the PTX text contains a zero byte") \
    X(ptx_token_unknown, INVALID_PTX, \
      "not a PTX token: '%.*s'") \
    X(ptx_text_ends, INVALID_PTX, \
      "the text ends where %s should stand") \
    X(ptx_unexpected, INVALID_PTX, \
      "'%.*s' where %s should stand") \
    X(ptx_text_ends_punct, INVALID_PTX, \
      "the text ends where '%c' should stand") \
    X(ptx_unexpected_punct, INVALID_PTX, \
      "'%.*s' where '%c' should stand") \
    X(ptx_directive_unknown, INVALID_PTX, \
      "unknown directive '%.*s'") \
    X(ptx_declared_twice, INVALID_PTX, \
      "'%.100s' is declared twice") \
    X(ptx_defined_twice, INVALID_PTX, \
      "'%.100s' is defined twice") \
    X(ptx_undeclared, INVALID_PTX, \
      "'%.*s' is not declared") \
    X(ptx_not_a_label, INVALID_PTX, \
      "'%.100s' is not a label") \
    X(ptx_not_an_array, INVALID_PTX, \
      "'%.100s' is indexed, and is no variable in memory") \
    X(ptx_operand_nesting, INVALID_PTX, \
      "operands nested deeper than %d") \
    X(ptx_operands_max, INVALID_PTX, \
      "more than %d operands") \
    X(ptx_block_nesting, INVALID_PTX, \
      "blocks nested deeper than %d") \
    X(ptx_initialiser_nesting, INVALID_PTX, \
      "initialiser nested deeper than %d") \
    X(ptx_initial_values, INVALID_PTX, \
      "'%.100s' has more initial values than elements") \
    X(ptx_variable_too_large, INVALID_PTX, \
      "'%.100s' is too large") \
    X(ptx_number_max, INVALID_PTX, \
      "%llu is more than %llu") \
    X(ptx_alignment, INVALID_PTX, \
      "alignment %llu is not a power of two") \
    X(ptx_predicate_space, INVALID_PTX, \
      ".pred is a type of registers alone") \
    X(ptx_version_missing, INVALID_PTX, \
      "no .version: this is not PTX") \
    X(ptx_target_missing, INVALID_PTX, \
      "no .target such as sm_90") \
    X(ptx_address_size, INVALID_PTX, \
      ".address_size %llu is not supported, only 64") \
    X(ptx_length_max, INVALID_PTX, \
      "PTX of %zu bytes is longer than 1 GiB: split the module") \
    X(ptx_name_max, INVALID_PTX, \
      "the name '%.*s...' has %u bytes, and a name may have %u") \
    X(ptx_no_random_numbers, SERVER_RESOURCES, \
      "the PTX can't be read: the system gives no random numbers") \
    X(ptx_no_memory, SERVER_RESOURCES, \
      "no memory to read the PTX") \
    X(ptx_memory_max, OUT_OF_MEMORY, \
      "reading the PTX takes more than the %zu bytes of memory that it may take: split " \
      "the module") \
    X(merge_no_memory, SUCCESS, \
      "no memory to link") \
    X(merge_defined_twice, SUCCESS, \
      "multiple definition of '%.100s' in '%.100s', first defined in '%.100s': leave one out, or " \
      "make one .weak") \
    X(merge_undefined, SUCCESS, \
      "undefined reference to '%.100s' in '%.100s': add the input that defines it") \
    X(merge_undefined_runtime, SUCCESS, \
      "undefined reference to '%.100s' in '%.100s': if it is of NVIDIA's device runtime ('%.100s'), " \
      "which is carried for grid groups alone, launch kernels from the host; else add the input that " \
      "defines it") \
    X(merge_kinds, SUCCESS, \
      "'%.100s' is a function in '%.100s' and a variable in '%.100s': rename one") \
    X(merge_prototypes, SUCCESS, \
      "the prototype of '%.100s' in '%.100s' is not that in '%.100s': correct one") \
    X(merge_spaces, SUCCESS, \
      "the memory space of '%.100s' in '%.100s' is not that in '%.100s': correct one") \
    X(merge_sizes, SUCCESS, \
      "'%.100s' has %llu bytes in '%.100s' and %llu in '%.100s': correct one") \
    X(merge_targets, SUCCESS, \
      "'%.100s' has .target %.40s, which is one device's alone, and '%.100s' has %.40s: compile " \
      "both for the same") \
    X(merge_target_words, SUCCESS, \
      "the .target of '%.100s' has other words than that of '%.100s': compile both with the same") \
    X(merge_calltargets, SUCCESS, \
      "'%.100s' has .calltargets, which is not linked with other inputs: use .callprototype") \
    X(merge_confused, SUCCESS, \
      "'%.100s' in the function '%.100s' of '%.100s' has the name of something in another input: " \
      "rename it") \
    X(merge_unread, SUCCESS, \
      "the inputs do not fit together: ") \
    X(merge_kind, SUCCESS, \
      "'%.100s' is an object or a library, and only PTX is linked: add its PTX (nvcc -rdc=true -ptx)") \
    X(merge_nvvm, SUCCESS, \
      "'%.100s' is NVVM or LTO-IR, which NVIDIA's compilers alone read, and only PTX is linked: " \
      "compile it to PTX, without link-time optimization (nvcc -rdc=true -ptx)") \
    X(merge_no_text, SUCCESS, \
      "'%.100s' has machine code, and only PTX is linked with other inputs: add its PTX") \
    X(merge_fatbin_no_text, SUCCESS, \
      "'%.100s' has no PTX for compute capability %d.%d or lower, and only PTX is linked with other " \
      "inputs: compile it as PTX too") \
    X(merge_fatbin_damaged, SUCCESS, \
      "'%.100s' is a damaged fatbin: compile it again") \
    X(merge_alone, SUCCESS, \
      "'%.100s' is linked alone and takes no other input: %s") \
    X(image_kind, INVALID_IMAGE, \
      "the image is neither PTX text, a cubin nor a fatbin") \
    X(image_size, INVALID_VALUE, \
      "an image must have 1 to %d bytes") \
    X(image_short, INVALID_IMAGE, \
      "the image can't be read: its file is shorter than its size says") \
    X(image_unreadable, SUCCESS, \
      "the image can't be read: %s") \
    X(image_memory_used_up, SERVER_RESOURCES, \
      "the modules of one client may take %s of the server's memory, %s of it are in use, " \
      "and this one needs %s: unload modules, or give gpushared a larger --image-memory") \
    X(image_memory_used_up_by_all, SERVER_RESOURCES, \
      "the modules of all clients may take %s of the server's memory, %s of it are in use, " \
      "and this one needs %s: wait until others unload theirs, or give gpushared a larger " \
      "--image-memory") \
    X(ptx_too_large, SERVER_RESOURCES, \
      "the module's PTX (%zu bytes) takes more than %s of the server's memory to read, " \
      "and one load may have no more: split it, compile it to a cubin, or give " \
      "gpushared a larger --image-memory") \
    X(ptx_unread_variables, INVALID_PTX, \
      "%s: the server can't read this PTX, and line %u may declare variables, whose memory it " \
      "could not charge: correct it, or compile it to a cubin") \
    X(fatbin_payload_max, INVALID_IMAGE, \
      "the fatbin claims to hold more than an image may have: split the module") \
    X(fatbin_compression, INVALID_IMAGE, \
      "the fatbin is compressed in a way that this server does not know: compile it with " \
      "-no-compress") \
    X(image_not_text, INVALID_IMAGE, \
      "the image is not PTX text; for a cubin or a fatbin give its size in bytes") \
    X(image_uncopied, OUT_OF_MEMORY, \
      "an image of %zu bytes can't be copied: %s") \
    X(image_too_large, INVALID_IMAGE, \
      "the image has %zu bytes; at most %d are allowed") \
    X(image_not_a_file, NOT_FOUND, \
      "%s is not a regular file") \
    X(image_file_size, INVALID_IMAGE, \
      "%s has %lld bytes; an image has 1 to %d") \
    X(image_file_unreadable, NOT_FOUND, \
      "%s can't be read: %s")

/* Things of PTX's grammar: the nouns of ptx_text_ends and ptx_unexpected. */
#define MESSAGES_PTX_WANTED(X) \
    X(VERSION, "a version such as 8.0") \
    X(TARGET, "a target such as sm_90") \
    X(FUNCTION, "a function's name") \
    X(DIRECTIVE, "a directive") \
    X(STATEMENT, "a statement") \
    X(LABEL, "a label") \
    X(PREDICATE, "a predicate") \
    X(INSTRUCTION, "an instruction") \
    X(OPERAND, "an operand") \
    X(VARIABLE, "a variable") \
    X(PARAMETER, ".param or .reg") \
    X(TYPE, "a type") \
    X(NAME, "a name") \
    X(NUMBER, "a number") \
    X(NUMBER_OR_NAME, "a number or a name")
/* clang-format on */

#endif
