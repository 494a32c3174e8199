// request-validation on a real data plane: schemas and OpenAPI documents, what they refuse and how, and what clients try.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { decode } from "../../../src/model/decode.ts";
import { finish } from "../../../src/pace.ts";
import { ApiDocument } from "../../../src/plugins/request-validation/openapi.ts";
import plugin from "../../../src/plugins/request-validation.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({});
});
afterAll(() => scene.stop());

const use = (config: Record<string, unknown>, label?: string) =>
  scene.apply({
    plugins: [
      {
        name: "request-validation",
        ...(label === undefined ? {} : { label }),
        config: { verbose_errors: true, ...config },
      },
    ],
  });

const JSON_TYPE = { "Content-Type": "application/json" };
const FORM = { "Content-Type": "application/x-www-form-urlencoded" };
const TEXT = { Accept: "text/plain" };

const post = (body: BodyInit, headers: Record<string, string> = JSON_TYPE, path = "/") =>
  scene.send("POST", path, { body, headers: { ...TEXT, ...headers } });

const body_schema = {
  type: "object",
  required: ["name"],
  properties: {
    name: { type: "string", minLength: 2, pattern: "^[a-z]+$" },
    age: { type: "integer", minimum: 0 },
    tags: { type: "array", items: { $ref: "#/$defs/tag" }, uniqueItems: true },
  },
  additionalProperties: false,
  $defs: { tag: { type: "string", maxLength: 3 } },
};

const problemsOf = (config: object) => {
  if (plugin.longCheck === undefined) throw new Error("it has no check");
  return finish(plugin.longCheck(decode(plugin.config, config) as never));
};

describe("a body", () => {
  test.each([
    ["fits", '{"name":"bob","age":3,"tags":["a","b"]}', 200, ""],
    ["lacks a member", "{}", 400, "must have required property 'name'"],
    ["has a wrong member", '{"name":"bob","age":"3"}', 400, ".age must be integer"],
    ["has one too many", '{"name":"bob","x\\"y":1}', 400, '(x"y)'],
    [
      "has a wrong item",
      '{"name":"bob","tags":["long"]}',
      400,
      ".tags[0] must NOT have more than 3",
    ],
    ["has an item twice", '{"name":"bob","tags":["a","a"]}', 400, "must not have duplicate items"],
    ["does not match", '{"name":"B0"}', 400, ".name must match pattern"],
    ["is no JSON", "{", 400, "is not JSON"],
    ["is no object", "[]", 400, "must be object"],
    ["is empty but there", " ", 400, "is not JSON"],
    ["has a member twice", '{"name":"bob","name":"Robert"}', 400, "name is given twice"],
    ["has one twice, escaped", '{"name":"bob","n\\u0061me":"X"}', 400, "name is given twice"],
    ["begins with a byte order mark", '\ufeff{"name":"bob"}', 400, "is not JSON"],
    ["reaches for the prototype", '{"__proto__":{"name":"bob"}}', 400, "must have required"],
    ["is deep", `{"name":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, 400, ""],
  ])("that %s", async (_, body, status, words) => {
    await use({ body_schema });
    const answer = await post(body);
    expect(answer.status).toBe(status);
    if (status !== 200) expect(answer.body).toContain(words);
    expect(answer.seen?.body ?? null).toBe(status === 200 ? body : null);
  });

  test("gets no details of the error by default", async () => {
    await use({ body_schema, verbose_errors: false, rejected_status: 422 });
    const answer = await post('{"name":"secret-value","age":-1}');
    expect(answer.status).toBe(422);
    expect(answer.body).toContain("the request is not valid");
    expect(answer.body).not.toContain("age");
  });

  test("is required where a method has one, and not elsewhere", async () => {
    await use({ body_schema });
    expect((await scene.send("POST", "/", { headers: TEXT })).body).toContain("a body is required");
    expect((await scene.get("/")).status).toBe(200);
    expect((await scene.send("DELETE", "/")).status).toBe(200);
  });

  test("of a form may be converted to numbers and lists", async () => {
    await use({ body_schema });
    expect((await post("name=bob&age=3&tags=a&tags=b", FORM)).status).toBe(200);
    expect((await post("name=bob&tags=a", FORM)).status).toBe(200);
    expect((await post("name=bob&age=x", FORM)).body).toContain(".age must be integer");
    expect((await post("name=%zz", FORM)).status).toBe(400);
    expect((await post('name="x"', { ...FORM })).status).toBe(400);
  });

  test.each([
    ["of another type", { "Content-Type": "text/plain" }],
    ["of no type", { "Content-Type": "" }],
    ["that is compressed", { ...JSON_TYPE, "Content-Encoding": "gzip" }],
  ])("%s is refused with 415: it cannot be validated", async (what, headers) => {
    await use({ body_schema });
    const json = '{"name":"bob"}';
    const answer = await post(what === "that is compressed" ? gzipSync(json) : json, headers);
    expect(answer.status).toBe(415);
    expect(answer.seen).toBeNull();
    expect(answer.headers.get("accept-encoding")).toBe(
      what === "that is compressed" ? "identity" : null,
    );
  });

  test("that is not UTF-8 is refused", async () => {
    await use({ body_schema });
    const bytes = Buffer.concat([
      Buffer.from('{"name":"bo'),
      Buffer.from([0xff]),
      Buffer.from('"}'),
    ]);
    expect((await post(bytes)).body).toContain("is not UTF-8");
  });

  test("has a limit, declared or not, and above it 413", async () => {
    await use({ body_schema: { type: "object" }, max_body: 20 });
    const of = (length: number) => `{"a":"${"x".repeat(length - 8)}"}`;
    expect((await post(of(20))).status).toBe(200);
    expect((await post(of(21))).status).toBe(413);
    expect((await post(new Blob([of(21)]).stream())).status).toBe(413);
    expect((await post(new Blob([of(20)]).stream())).seen?.body).toBe(of(20));
  });
});

test("content types are refused with 415, whatever the body", async () => {
  await use({ content_types: ["application/json", "image/*"] });
  const types: [string, number][] = [
    ["application/json; charset=utf-8", 200],
    ["APPLICATION/JSON", 200],
    ["image/png", 200],
    ["text/plain", 415],
    ["application/jsonx", 415],
    ["", 415],
  ];
  for (const [type, status] of types)
    expect(`${type} ${(await post("x", { "Content-Type": type })).status}`).toBe(
      `${type} ${status}`,
    );
  expect((await scene.get("/")).status).toBe(200);
});

test("header fields and the query may hold numbers, booleans and lists", async () => {
  await use({
    header_schema: {
      type: "object",
      required: ["x-count"],
      properties: { "x-count": { type: "integer", maximum: 5 } },
    },
    query_schema: {
      type: "object",
      properties: {
        page: { type: "integer", minimum: 1 },
        all: { type: "boolean" },
        id: { type: "array", items: { type: "integer" } },
        when: { type: "string", format: "date" },
      },
      additionalProperties: false,
    },
  });
  const ok = { "X-Count": "3", ...TEXT };
  const cases: [string, Record<string, string>, string | null][] = [
    ["/?page=2&all=true&id=1&id=2&when=2026-02-28", ok, null],
    ["/?id=7", ok, null],
    ["/", TEXT, "must have required property 'x-count'"],
    ["/", { ...ok, "X-Count": "6" }, ".x-count must be <= 5"],
    ["/?page=0", ok, "the query: .page must be >= 1"],
    ["/?page=x", ok, ".page must be integer"],
    ["/?page=1&page=2", ok, ".page must be integer"],
    ["/?id=1&id=x", ok, ".id[1] must be integer"],
    ["/?when=2026-02-30", ok, '.when must match format "date"'],
    ["/?more=1", ok, "(more)"],
    ["/?p%61ge=0", ok, ".page must be >= 1"],
    ["/?page=%zz", ok, "has invalid escapes"],
  ];
  for (const [path, headers, words] of cases) {
    const { status, body } = await scene.get(path, headers);
    expect(`${path} ${status}`).toBe(`${path} ${words === null ? 200 : 400}`);
    if (words !== null) expect(body).toContain(words);
  }
});

const DOCUMENT = `
openapi: 3.0.3
info: { title: Pets, version: "1" }
servers: [{ url: "https://api.example.com/v1" }]
paths:
  /pets:
    get:
      parameters:
        - { name: limit, in: query, schema: { type: integer, maximum: 10 } }
        - { name: ids, in: query, explode: false, schema: { type: array, items: { type: integer } } }
        - { name: filter, in: query, style: deepObject, schema: { type: object } }
        - { name: where, in: query, content: { application/json: { schema: { type: object, required: [a] } } } }
        - { $ref: "#/components/parameters/Tenant" }
    post:
      requestBody: { $ref: "#/components/requestBodies/Pet" }
  /pets/mine:
    get: {}
  /pets/{id}:
    parameters:
      - { name: id, in: path, required: true, schema: { type: integer } }
    get: {}
    put:
      requestBody:
        content:
          application/json: { schema: { $ref: "#/components/schemas/Pet" } }
          image/*: {}
components:
  parameters:
    Tenant: { name: X-Tenant, in: header, required: true, schema: { type: string, enum: [a, b] } }
  requestBodies:
    Pet:
      required: true
      content:
        application/json:
          schema: { $ref: "#/components/schemas/Pet" }
          example: { $ref: "http://not.looked/at" }
  schemas:
    Pet:
      type: object
      required: [name, id]
      properties:
        id: { type: integer, readOnly: true }
        name: { type: string, nullable: true, pattern: "^[a-z]*$" }
        weight: { type: number, minimum: 0, exclusiveMinimum: true }
        example: { type: boolean }
        friend: { $ref: "#/components/schemas/Pet" }
`;

describe("an OpenAPI document", () => {
  const tenant = { "X-Tenant": "a", ...TEXT };
  test.each([
    ["GET", "/v1/pets?limit=3&ids=1,2&filter[a]=1", tenant, null, 200, ""],
    ["HEAD", "/v1/pets", tenant, null, 200, ""],
    ["GET", "/v1/pets", TEXT, null, 400, "header parameter X-Tenant is required"],
    ["GET", "/v1/pets", { "X-Tenant": "c", ...TEXT }, null, 400, "X-Tenant must be equal to one"],
    ["GET", "/v1/pets?limit=11", tenant, null, 400, "query parameter limit must be <= 10"],
    ["GET", "/v1/pets?limit=1&limit=2", tenant, null, 400, "limit is repeated"],
    ["GET", "/v1/pets?ids=1,x", tenant, null, 400, "ids [1] must be integer"],
    ["GET", '/v1/pets?where={"a":1}', tenant, null, 200, ""],
    ["GET", "/v1/pets?where={}", tenant, null, 400, "where must have required property"],
    ["GET", "/v1/pets?where={", tenant, null, 400, "where must be JSON"],
    ["GET", "/v1/pets/mine", TEXT, null, 200, ""],
    ["GET", "/v1/pets/7", TEXT, null, 200, ""],
    ["GET", "/v1/pets/x", TEXT, null, 400, "path parameter id must be integer"],
    ["DELETE", "/v1/pets/7", TEXT, null, 400, "the path does not have this method"],
    ["GET", "/v1/cats", TEXT, null, 400, "the path does not exist"],
    ["GET", "/pets/7", TEXT, null, 400, "the path does not exist"],
    ["GET", "/v1/pets/7/8", TEXT, null, 400, "the path does not exist"],
    ["POST", "/v1/pets", JSON_TYPE, '{"name":null,"weight":0.1,"example":true}', 200, ""],
    ["POST", "/v1/pets", JSON_TYPE, '{"name":"x","weight":0}', 400, ".weight must be > 0"],
    ["POST", "/v1/pets", JSON_TYPE, '{"name":"x","example":1}', 400, ".example must be boolean"],
    [
      "POST",
      "/v1/pets",
      JSON_TYPE,
      '{"name":"x","friend":{"name":"X"}}',
      400,
      ".friend.name must match",
    ],
    ["POST", "/v1/pets", JSON_TYPE, null, 400, "a body is required"],
    ["POST", "/v1/pets", { "Content-Type": "text/plain" }, "x", 415, ""],
    ["PUT", "/v1/pets/7", { "Content-Type": "image/png" }, "\u0000", 200, ""],
    ["PUT", "/v1/pets/7", JSON_TYPE, "{}", 400, "required property 'name'"],
    ["PUT", "/v1/pets/7", TEXT, null, 200, ""],
  ])("%s %s %j %s: %i %s", async (method, path, headers, body, status, words) => {
    await use({ openapi: { spec: DOCUMENT } });
    const answer = await scene.send(method, path, { headers: { ...TEXT, ...headers }, body });
    expect(answer.status).toBe(status);
    if (words !== "") expect(answer.body).toContain(words);
  });

  test("of 3.1 uses the schemas of its version", async () => {
    const spec = JSON.stringify({
      openapi: "3.1.0",
      paths: {
        "/x": {
          post: {
            requestBody: {
              content: {
                "application/json": {
                  schema: { type: ["object", "null"], properties: { a: { const: 1 } }, $defs: {} },
                },
              },
            },
          },
        },
      },
    });
    await use({ openapi: { spec } });
    expect((await post("null", JSON_TYPE, "/x")).status).toBe(200);
    expect((await post('{"a":2}', JSON_TYPE, "/x")).status).toBe(400);
  });

  test("allows preflight requests", async () => {
    await use({ openapi: { spec: DOCUMENT } });
    const preflight = { Origin: "https://a.example", "Access-Control-Request-Method": "PUT" };
    expect((await scene.send("OPTIONS", "/v1/pets", { headers: preflight })).status).toBe(200);
    expect((await scene.send("OPTIONS", "/v1/pets")).status).toBe(400);
  });

  test.each([
    ["is no document", "just text", "must be an OpenAPI document"],
    ["is of another version", '{"openapi":"2.0","paths":{}}', "must be OpenAPI 3.0 or 3.1"],
    [
      "refers to nothing",
      '{"openapi":"3.1.0","paths":{"/x":{"get":{"parameters":[{"$ref":"#/components/parameters/None"}]}}}}',
      "is nowhere",
    ],
    [
      "refers in a circle",
      '{"openapi":"3.1.0","paths":{"/x":{"$ref":"#/paths/~1y"},"/y":{"$ref":"#/paths/~1x"}}}',
      "in a circle",
    ],
  ])("that %s is not served", async (_, spec, words) => {
    const refused = await use({ openapi: { spec } }).then(
      () => "served",
      (error: Error) => error.message,
    );
    expect(refused).toContain(words);
  });

  test("from a URL is fetched, kept during outages, and 503 while there is none", async () => {
    let text: string | null = null;
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => (text === null ? new Response(null, { status: 500 }) : new Response(text)),
    });
    await scene.apply({ removedPlugins: ["request-validation"] });
    const openapi = { url: `http://127.0.0.1:${server.port}/openapi.yaml` };
    await use({ openapi }, "none");
    expect((await scene.get("/v1/pets/7")).status).toBe(503);
    await scene.apply({ removedPlugins: ["none"] });
    text = DOCUMENT.replace("^[a-z]*$", "^(a+)+$");
    await use({ openapi }, "some");
    expect((await scene.get("/v1/pets/7")).status).toBe(200);
    expect((await scene.get("/v1/pets/x")).status).toBe(400);
    // This pattern was not checked, so it is not used.
    const told = await eventually(() =>
      scene.plane.log.find(({ message }) => message.includes("patterns of an OpenAPI")),
    );
    expect(told.fields["patterns"]).toEqual(["^(a+)+$"]);
    const body = JSON.stringify({ name: `${"a".repeat(5000)}!` });
    expect((await post(body, JSON_TYPE, "/v1/pets")).status).toBe(200);
    await server.stop(true);
    expect((await scene.get("/v1/pets/7")).status).toBe(200);
    await scene.apply({ removedPlugins: ["some"] });
  });
});

describe("expensive documents", () => {
  test("long uniqueItems lists are checked at once", async () => {
    await use({ body_schema: { type: "array", uniqueItems: true } });
    const items = Array.from({ length: 30_000 }, (_, id) => ({ id, b: [id] }));
    expect((await post(JSON.stringify(items))).status).toBe(200);
    expect((await post(JSON.stringify([...items, { b: [7], id: 7 }]))).status).toBe(400);
  });

  test.each([
    [
      { body_schema: { properties: { a: { pattern: "^(a+)+$" } } } },
      "body_schema.properties.a.pattern",
    ],
    [{ query_schema: { patternProperties: { "(x+x+)+y": {} } } }, "query_schema.patternProperties"],
    [
      { openapi: { spec: DOCUMENT } },
      "openapi.spec.components.schemas.Pet.properties.name.pattern",
    ],
  ])("patterns are reported for checking: %j", (config, path) => {
    const regexes = plugin.regexes as unknown as (config: unknown) => readonly { path: string }[];
    expect(regexes(decode(plugin.config, config)).map((each) => each.path)).toEqual([path]);
  });

  test.each([
    [{ body_schema: { $ref: "http://evil.example/x" } }, "body_schema.$ref"],
    [{ body_schema: { properties: { $ref: { type: "string" } } } }, null],
    [{ body_schema: { const: { $ref: "http://a.example" } } }, null],
    [
      { header_schema: { allOf: [{ $dynamicRef: "file:///etc/passwd" }] } },
      "header_schema.allOf.0.$dynamicRef",
    ],
    [{ body_schema: { $id: "http://evil.example/" } }, "body_schema.$id"],
    [
      { body_schema: { $schema: "http://json-schema.org/draft-07/schema#" } },
      "body_schema.$schema",
    ],
    [{ openapi: { spec: "a: [" } }, "openapi.spec"],
    [
      { openapi: { spec: 'openapi: 3.0.0\npaths: {/x: {$ref: "other.yaml#/x"}}' } },
      "openapi.spec.paths./x.$ref",
    ],
    [{ openapi: {} }, "openapi"],
    [{ body_schema: { type: "strng" } }, "body_schema"],
    [{ body_schema: { minimum: "1" } }, "body_schema"],
    [{ query_schema: { $ref: "#/$defs/none" } }, "query_schema"],
    [{ openapi: { spec: DOCUMENT.replace("type: boolean", "type: bool") } }, "openapi.spec"],
    [{ openapi: { spec: DOCUMENT.replace("maximum: 10", "maximum: ten") } }, "openapi.spec"],
    [{ openapi: { spec: "{}", url: "http://a.example" } }, "openapi"],
  ])("refuses external and invalid references: %j", (config, path) => {
    const found = problemsOf(config).map((each) => each.path);
    expect(found).toEqual(path === null ? [] : [path]);
  });

  test("a document that expands to millions of members is refused", () => {
    const bomb = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
    for (let at = 1; at < 9; at++)
      bomb.push(
        `a${at}: &a${at} [${Array(10)
          .fill(`*a${at - 1}`)
          .join(", ")}]`,
      );
    const [problem] = problemsOf({ openapi: { spec: bomb.join("\n") } });
    expect(problem?.message).toMatch(/too large|must be JSON or YAML/);
  });

  /** An object with so many values, and one more for each operation that refers to it. */
  const schemaWith = (values: number) => ({
    properties: Object.fromEntries(Array.from({ length: values - 1 }, (_, at) => [`p${at}`, true])),
  });
  const documentWith = (schema: object, operations: number) => {
    const content = { "application/json": { schema: { $ref: "#/components/schemas/one" } } };
    const paths = Object.fromEntries(
      Array.from({ length: operations }, (_, at) => [
        `/p${at}`,
        { post: { requestBody: { content } } },
      ]),
    );
    return JSON.stringify({ openapi: "3.1.0", paths, components: { schemas: { one: schema } } });
  };

  test("a schema holds at most 2,000 values, with all that it refers to", () => {
    expect(problemsOf({ body_schema: schemaWith(2_000) })).toEqual([]);
    const message = "holds more than 2,000 values, with all that it refers to";
    expect(problemsOf({ body_schema: schemaWith(2_001) })).toEqual([
      { path: "body_schema", message },
    ]);
    // The reference is a value, too.
    expect(problemsOf({ openapi: { spec: documentWith(schemaWith(1_999), 1) } })).toEqual([]);
    expect(problemsOf({ openapi: { spec: documentWith(schemaWith(2_000), 1) } })).toEqual([
      {
        path: "openapi.spec",
        message: `#/paths/~1p0/post/requestBody/content/application~1json ${message}`,
      },
    ]);
  });

  test("a document that is fetched is not compiled where a schema is larger", () => {
    const document = new ApiDocument(documentWith(schemaWith(2_000), 1), {
      hasSafePatterns: false,
    });
    const found = document.match("POST", "/p0");
    if (typeof found === "string") throw new Error(found);
    const checks = found.operation.body?.content.get("application/json");
    const message =
      "cannot be checked: its schema holds more than 2,000 values, with all that it refers to";
    expect([checks?.strict?.({}), checks?.lenient?.({})]).toEqual([message, message]);
  });

  test("what thousands of operations refer to is compiled once", () => {
    const spec = documentWith({ type: "strng" }, 2000);
    expect(problemsOf({ openapi: { spec } }).length).toBe(1);
    const stepsOf = (operations: number) => {
      const config = { openapi: { spec: documentWith(schemaWith(2000), operations) } };
      return [...(plugin.longCheck?.(decode(plugin.config, config) as never) ?? [])].length;
    };
    expect(stepsOf(2000)).toBe(stepsOf(1));
  });
});
