// HTTP knowledge that plugins may use; only passes on.
export { hyphenated, isFieldValue, isToken } from "../http/fields.ts";
export { cookieValue, cookieValues } from "../http/cookie.ts";
export { queryValue } from "../http/query.ts";
export { negotiate } from "../http/accept.ts";
export { canonicalPath, comparablePath, replacePrefix } from "../http/request-target.ts";
export { normalizeHost, parseAuthority } from "../http/authority.ts";
export { GATEWAY_FIELDS } from "../http/gateway-fields.ts";
export { connectionOptions, HOP_BY_HOP } from "../http/hop-by-hop.ts";
export { addVary } from "../http/vary.ts";
export { formatTraceParent, parseTraceParent, type TraceParent } from "../http/trace-context.ts";
export { encodeGrpcMessage, grpcStatusOfHttp, isGrpcContentType } from "../http/grpc.ts";
export { forbiddenInTrailers } from "../http/trailer-fields.ts";
