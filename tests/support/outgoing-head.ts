// Heads of responses for tests that speak to a server engine without a request path.
import { FieldList } from "../../src/http/field-list.ts";
import { ListHead } from "../../src/dataplane/upstream/response-head.ts";

export const headOf = (fields: Readonly<Record<string, string>> = {}, status = 200): ListHead =>
  new ListHead(new FieldList(fields), { status });
