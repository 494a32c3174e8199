// Builds the API reference page and the OpenAPI description from the endpoints; handles no call.
import { swagger } from "@elysiajs/swagger";
import { Elysia } from "elysia";
import { DESCRIPTION_PATH, DOCS_PATH, JSON_PATH, SCRIPT_PATH, YAML_PATH } from "./docs.ts";
import type { Endpoint } from "./endpoint.ts";
import { describedSchemas } from "./described-schemas.ts";
import { tagDescriptions } from "./tags.ts";
import { anyScheme, describeAccess, OPEN, securitySchemes } from "./security-schemes.ts";
import { errorResponses, sharedParts, withReferences } from "./description.ts";

export interface Reference {
  /** The page or the description at a path. */
  answer(path: string): Promise<Response>;
}

export interface ReferenceOptions {
  readonly version: string;
  /** Name of the cookie of a session over HTTP. */
  readonly sessionCookie: string;
}

/** A second framework instance with all routes, so that its plugin can describe them; it only serves the reference. */
export function createReference(
  endpoints: readonly Endpoint[],
  options: ReferenceOptions,
): Reference {
  const elysia = new Elysia({ aot: true, normalize: false });
  for (const endpoint of endpoints)
    elysia.route(endpoint.method, endpoint.path, () => "", {
      detail: withReferences(describeAccess(endpoint)) as object,
    });
  elysia.use(docsPlugin(endpoints, options));
  elysia.get(YAML_PATH, () => describeAsYaml(elysia), { detail: descriptionIn("YAML") });
  elysia.get(JSON_PATH, () => ask(elysia, DESCRIPTION_PATH), { detail: descriptionIn("JSON") });
  return { answer: (path) => ask(elysia, path) };
}

const ask = async (elysia: Pick<Elysia, "handle">, path: string): Promise<Response> =>
  await elysia.handle(new Request(`http://localhost${path}`));

async function describeAsYaml(elysia: Pick<Elysia, "handle">): Promise<Response> {
  const response = await ask(elysia, DESCRIPTION_PATH);
  return new Response(Bun.YAML.stringify(await response.json(), null, 2), {
    headers: { "content-type": "application/yaml; charset=utf-8" },
  });
}

/** Without quotation marks or angle brackets: the plugin writes it into the page's attributes unescaped. */
const introduction = [
  "Configures the gateway at run time. A change returns 200 only when every worker serves it.",
  "An error is an object with one field `error`: a message that says what is wrong. PUT replaces an object, absent fields return" +
    " to their defaults; PATCH changes the fields that are sent. An `:id` may be the id or the unique name." +
    " `?dry_run=1` validates a change without making it; `If-Match` with an `ETag` makes it only if the object is unchanged." +
    " `If-None-Match` with the `ETag` of a read gets 304 while it is unchanged. A body may have the `Content-Encoding` gzip, deflate or br.",
  "Before the first user exists, every client of this address has full access. From then on, a session cookie," +
    " an `Authorization` header with `Bearer` and a token, or an `X-Admin-Token` header is required.",
].join("\n\n");

/** The plugin that serves the page and collects the description from the routes. */
function docsPlugin(endpoints: readonly Endpoint[], { version, sessionCookie }: ReferenceOptions) {
  return swagger({
    provider: "scalar",
    path: DOCS_PATH,
    specPath: DESCRIPTION_PATH,
    scalarCDN: SCRIPT_PATH,
    scalarConfig: scalarConfig as object,
    excludeStaticFile: false,
    documentation: {
      // Schemas use the null type, which came with 3.1.
      openapi: "3.1.0",
      info: {
        title: "Sluice management API",
        version,
        description: introduction,
        license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
      },
      servers: [{ url: "/", description: "The gateway that serves this description" }],
      tags: Object.entries(tagDescriptions).map(([name, description]) => ({ name, description })),
      components: {
        schemas: describedSchemas(schemasOfRequests(endpoints)),
        ...sharedParts,
        securitySchemes: securitySchemes(sessionCookie),
      },
      security: anyScheme,
    } as NonNullable<Parameters<typeof swagger>[0]>["documentation"] & object,
  });
}

function schemasOfRequests(endpoints: readonly Endpoint[]): ReadonlySet<string> {
  const bodies = JSON.stringify(endpoints.map(({ description }) => description.requestBody));
  return new Set(
    [...bodies.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name = ""]) => name),
  );
}

/** A sluice gate; without an icon in the page browsers request /favicon.ico. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E%3Cpath fill=%22%231a7fb5%22 d=%22M1 2h14v2h-2v3h-2V4H9v5H7V4H5v3H3V4H1zm0 9q1.75-2 3.5 0t3.5 0 3.5 0 3.5 0v2q-1.75 2-3.5 0t-3.5 0-3.5 0-3.5 0z%22/%3E%3C/svg%3E";

/** No fonts, proxies, telemetry or assistants of the reference's vendor. */
const scalarConfig = {
  url: DESCRIPTION_PATH,
  // The plugin sets the URL in a form for which the reference logs a deprecation warning in the browser.
  spec: { url: "" },
  favicon: ICON,
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
  // Open, it would draw all operations of the first tag before the page responds.
  defaultOpenFirstTag: false,
};

const descriptionIn = (format: "JSON" | "YAML") => ({
  operationId: `getDescriptionAs${format === "JSON" ? "Json" : "Yaml"}`,
  summary: `Get the API description as ${format}`,
  description: OPEN,
  tags: ["Status"],
  security: [],
  responses: {
    "200": {
      description: `OpenAPI 3.1 as ${format}`,
      content: {
        [`application/${format.toLowerCase()}`]: { schema: { type: "object" as const } },
      },
    },
    ...withReferences(errorResponses([403, 500])),
  },
});
