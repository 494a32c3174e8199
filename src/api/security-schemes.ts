// Authentication schemes and required roles of operations in OpenAPI; decides nothing.
import { accessTable } from "./access.ts";
import { errorResponses } from "./description.ts";
import type { Description, Endpoint } from "./endpoint.ts";
import { fleetHeaders, fleetParameters } from "./fleet-write.ts";

/** `components.securitySchemes`; `sessionCookie`: its name over HTTP. */
export const securitySchemes = (sessionCookie: string) =>
  ({
    bearer: {
      type: "http",
      scheme: "bearer",
      description: "The admin token or a named token",
    },
    adminToken: {
      type: "apiKey",
      in: "header",
      name: "X-Admin-Token",
      description: "The same tokens, for programs that cannot set Authorization",
    },
    session: {
      type: "apiKey",
      in: "cookie",
      name: sessionCookie,
      description: "Set by the sign-in; lasts 7 days. Over HTTPS its name has the prefix `__Host-`",
    },
    accessToken: {
      type: "apiKey",
      in: "query",
      name: "access_token",
      description:
        "The same tokens, only for event streams, because browsers cannot set headers there",
    },
  }) as const;

/** Any one of them is enough. */
export const anyScheme = [{ bearer: [] }, { adminToken: [] }, { session: [] }];

/** Every reply to a change may name the nodes that serve it. */
function withFleetHeaders(responses: Description["responses"]) {
  const success = responses["200"] as { readonly headers?: object } | undefined;
  if (success === undefined) return responses;
  return { ...responses, "200": { ...success, headers: { ...success.headers, ...fleetHeaders } } };
}

/** In descriptions of operations. */
export const OPEN = "Needs no authentication.";

/** `GET /api/v1/services/:id/health` -> `getServicesByIdHealth`: stable as long as the path is. */
function operationIdOf({ method, path }: Endpoint): string {
  const words = path.replace(/^\/api\/v1/, "").match(/:?[A-Za-z0-9]+/g) ?? [];
  const parts = words.map((word) =>
    word.startsWith(":") ? `By${title(word.slice(1))}` : title(word),
  );
  return `${method.toLowerCase()}${parts.join("")}`;
}

const title = (word: string) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;

/** The operation as its endpoint describes it, with the requirements of the guard. */
export function describeAccess(endpoint: Endpoint): Description & {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly "x-required-role"?: unknown;
} {
  const { method, path, takesBody } = endpoint;
  const row = accessTable.find((one) => one.path === path);
  const role = row?.methods[method];
  const access = role === "open" ? OPEN : `Role: ${role}.`;
  const { description: text } = endpoint.description;
  const description = {
    operationId: operationIdOf(endpoint),
    ...endpoint.description,
    description: text === undefined ? access : `${text}\n\n${access}`,
  };
  const slow = takesBody === false ? [] : [408];
  if (role === "open")
    return {
      ...description,
      security: [],
      responses: { ...errorResponses(slow), ...description.responses },
    };
  const security = row?.stream === true ? [...anyScheme, { accessToken: [] }] : anyScheme;
  const responses = { ...errorResponses([401, ...slow]), ...description.responses };
  const described = { ...description, security, responses, "x-required-role": role };
  if (method === "GET") return described;
  const parameters = [...(description.parameters ?? []), ...fleetParameters];
  return { ...described, parameters, responses: withFleetHeaders(responses) };
}
