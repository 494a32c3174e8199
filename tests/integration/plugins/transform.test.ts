// transform on a real data plane: every change to requests and responses, limits at their border, and what clients try with it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { decode } from "../../../src/model/decode.ts";
import transform from "../../../src/plugins/transform.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

const MIB = 1_048_576;
let scene: PluginScene;
let answer: (request: Request) => Response | Promise<Response> = () => new Response("ok");

beforeAll(async () => {
  process.env["SLUICE_ENV_REGION"] = "north";
  scene = await pluginScene({ answer: (request) => answer(request) });
});
afterAll(async () => {
  delete process.env["SLUICE_ENV_REGION"];
  await scene.stop();
});

const use = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "transform", config }] });

const json = (value: unknown, init: ResponseInit = {}) => Response.json(value, init);

const post = (body: string, headers: Record<string, string> = {}, path = "/") =>
  scene.send("POST", path, { body, headers: { "Content-Type": "application/json", ...headers } });

describe("a request", () => {
  test("gets another method, path and host", async () => {
    await use({
      request: {
        method: "PUT",
        path_rewrite: {
          regex: "^/api/(\\w+)/(?<rest>.*)$",
          to: "/v2/$<rest>/$1/${request.header.x}",
        },
        host: "${request.header.x}.internal",
      },
    });
    const { seen } = await scene.get("/api/users/a%20b?q=1", { x: "t1" });
    expect(seen?.method).toBe("PUT");
    expect(seen?.target).toBe("/v2/a%20b/users/t1?q=1");
    expect(seen?.headers["host"]).toBe("t1.internal");
    expect((await scene.get("/other", { x: "t1" })).seen?.target).toBe("/other");
  });

  test("gets header fields: removed, renamed, set, added", async () => {
    await use({
      request: {
        headers: {
          remove: ["X-Gone"],
          rename: { "X-Old": "X-New", "X-None": "X-Nothing" },
          set: { "X-Set": "${path.1}-${env.SLUICE_ENV_REGION}", "X-New2": "n" },
          add: { "X-Add": "two" },
        },
      },
    });
    const { seen } = await scene.get("/first/second", {
      "X-Gone": "1",
      "X-Old": "o",
      "X-Set": "client",
      "X-Add": "one",
      X_Set: "alias",
    });
    expect(seen?.headers).toMatchObject({
      "x-new": "o",
      "x-set": "first-north",
      "x-new2": "n",
      "x-add": "one, two",
    });
    for (const name of ["x-gone", "x-old", "x-nothing", "x_set"])
      expect(seen?.headers).not.toHaveProperty(name);
  });

  test("gets parameters, and keeps the others as they were written", async () => {
    await use({
      request: {
        query: {
          remove: ["gone"],
          rename: { old: "new" },
          set: { set: "${request.header.x}" },
          add: { many: "3" },
        },
      },
    });
    const { seen } = await scene.get("/?a=%20+&gone=1&old=x%2Fy&set=c&many=1&many=2&b&g%6Fne=2", {
      x: "1 & 2=3#",
    });
    expect(seen?.target).toBe("/?a=%20+&new=x%2Fy&many=1&many=2&b&set=1%20%26%202%3D3%23&many=3");
  });

  describe("with a JSON body", () => {
    const members = {
      remove: ["secret", "items.0", "/a.b/c~1d"],
      rename: { "user.name": "account.login", none: "nothing" },
      set: {
        "meta.by": "${request.header.x}",
        flag: true,
        list: [1, "${path.1}"],
        "items.1": "end",
      },
    };

    test("gets members, and the matching length", async () => {
      await use({ request: { body_json: members } });
      const { seen } = await post(
        JSON.stringify({
          secret: 1,
          items: ["x", "y"],
          "a.b": { "c/d": 1, e: 2 },
          user: { name: "alice", age: 3 },
        }),
        { x: 'quo"te' },
        "/p",
      );
      expect(JSON.parse(seen?.body ?? "")).toEqual({
        items: ["y", "end"],
        "a.b": { e: 2 },
        user: { age: 3 },
        account: { login: "alice" },
        meta: { by: 'quo"te' },
        flag: true,
        list: [1, "p"],
      });
      expect(seen?.headers["content-length"]).toBe(String(Buffer.byteLength(seen?.body ?? "")));
    });

    test("keeps numbers that are too long for JavaScript", async () => {
      await use({ request: { body_json: { set: { a: 1 } } } });
      const { seen } = await post('{"id":12345678901234567890,"price":1.10,"e":1e400}');
      expect(seen?.body).toBe('{"id":12345678901234567890,"price":1.10,"e":1e400,"a":1}');
    });

    test.each([
      ["no JSON", "{", {}],
      ["a text", '"x"', {}],
      ["not UTF-8", "\xff", {}],
      ["another type", '{"secret":1}', { "Content-Type": "text/plain" }],
      ["compressed, or said to be", '{"secret":1}', { "Content-Encoding": "gzip" }],
      ["too deep", "[".repeat(200_000), {}],
    ])("is unchanged when it is %s", async (_, body, headers) => {
      await use({ request: { body_json: members } });
      const { seen, status } = await post(body, headers);
      expect(status).toBe(200);
      expect(seen?.body).toBe(body);
    });

    test("has a limit of 1 MiB, and above it 413", async () => {
      await use({ request: { body_json: { set: { a: 1 } } } });
      const of = (bytes: number) => `{"x":"${"a".repeat(bytes - 8)}"}`;
      expect((await post(of(MIB))).seen?.body).toEndWith('a","a":1}');
      const refused = await post(of(MIB + 1));
      expect(refused.status).toBe(413);
      expect(refused.seen).toBeNull();
    });

    test("does not reach prototypes", async () => {
      await use({ request: { body_json: { set: { "constructor.prototype.polluted": 1 } } } });
      await post("{}");
      expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
      const { seen } = await post('{"__proto__":{"x":1}}');
      expect(seen?.body).toContain('"constructor":{"prototype":{"polluted":1}}');
    });
  });

  test("gets a body from a template, escaped for its type", async () => {
    const request = { body_template: '{"who":"${request.header.x}"}' };
    await use({ request });
    const { seen } = await post("old", { x: '","admin":true,"y":"' });
    expect(JSON.parse(seen?.body ?? "")).toEqual({ who: '","admin":true,"y":"' });
    expect(seen?.headers["content-length"]).toBe(String(seen?.body.length));
    await use({ request: { body_template: "a=${request.header.x}" } });
    const form = await post("old", {
      x: "1&b=2",
      "Content-Type": "application/x-www-form-urlencoded",
    });
    expect(form.seen?.body).toBe("a=1%26b%3D2");
    expect((await scene.get("/", { x: "1" })).seen?.body).toBe("");
  });

  test("expands no variables of the client", async () => {
    await use({
      request: {
        headers: { set: { "X-Set": "${request.query.v}" } },
        path_rewrite: { regex: "^/p$", to: "/files/${request.query.v}" },
      },
    });
    const { seen } = await scene.get("/x?v=a%0d%0aX-Evil:%201%00%e2%82%ac%c3%a9");
    expect(seen?.headers["x-set"]).toBe("a%0D%0AX-Evil: 1%00%E2%82%AC\u00e9");
    expect(seen?.headers).not.toHaveProperty("x-evil");
    expect((await scene.get("/p?v=a%20b%3Fc%23d%25")).seen?.target).toStartWith(
      "/files/a%20b%3Fc%23d%25?",
    );
    for (const way of ["../admin", "..%252fadmin", "%252e%252e/admin", "."]) {
      const { status, seen: reached } = await scene.get(`/p?v=${way}`);
      expect(`${way} ${status}`).toBe(`${way} 400`);
      expect(reached).toBeNull();
    }
    await use({ request: { host: "${request.query.v}" } });
    expect((await scene.get("/?v=a%20b")).status).toBe(400);
    expect((await scene.get("/?v=a%0d%0ab")).status).toBe(400);
  });
});

describe("a response", () => {
  test("gets another status and header fields", async () => {
    await use({
      response: {
        status_map: { "404": 200, "5xx": 502, "503": 599 },
        headers: {
          remove: ["X-Gone"],
          rename: { "X-Old": "X-New", "Set-Cookie": "X-Cookies" },
          set: { "X-Set": "${request.query.v}" },
          add: { "X-Many": "2" },
        },
      },
    });
    answer = (request) =>
      new Response("x", {
        status: Number(new URL(request.url).pathname.slice(1)),
        headers: [
          ["X-Gone", "1"],
          ["X-Old", "o"],
          ["X-Many", "1"],
          ["Set-Cookie", "a=1"],
          ["Set-Cookie", "b=2"],
        ],
      });
    for (const [from, to] of [
      [404, 200],
      [500, 502],
      [503, 599],
      [201, 201],
    ])
      expect((await scene.get(`/${from}`)).status).toBe(to ?? 0);
    const { headers } = await scene.get("/200?v=a%0d%0ab");
    expect(Object.fromEntries(headers)).toMatchObject({
      "x-new": "o",
      "x-set": "a%0D%0Ab",
      "x-many": "1, 2",
      "x-cookies": "a=1, b=2",
    });
    for (const name of ["x-gone", "x-old", "set-cookie"]) expect(headers.has(name)).toBe(false);
  });

  test("gets another JSON body, with its length and a weak ETag, and the target gets no Range", async () => {
    await use({
      response: { body_json: { remove: ["debug"], set: { "meta.path": "${request.path}" } } },
    });
    answer = () => json({ id: 1, debug: "x" }, { headers: { ETag: '"abc"', "Content-MD5": "x" } });
    const { body, headers, seen } = await scene.get("/x", {
      "Accept-Encoding": "gzip, br",
      Range: "bytes=0-1",
    });
    expect(JSON.parse(body)).toEqual({ id: 1, meta: { path: "/x" } });
    expect(headers.get("content-length")).toBe(String(body.length));
    expect(headers.get("etag")).toBe('W/"abc"');
    expect(headers.has("content-md5")).toBe(false);
    expect(seen?.headers["accept-encoding"]).toBe("identity");
    expect(seen?.headers).not.toHaveProperty("range");
  });

  test("gets replacements with groups, escaped for its type", async () => {
    await use({
      response: {
        body_replace: [
          { regex: "http://(\\w+)\\.internal", with: "https://$1.example" },
          { regex: "NAME", with: "${request.query.name}" },
        ],
      },
    });
    answer = () =>
      new Response("<a href=http://a.internal>NAME</a>http://b.internal", {
        headers: { "Content-Type": "text/html; charset=utf-8" },
      });
    expect((await scene.get("/?name=%3Cscript%3E$1")).body).toBe(
      "<a href=https://a.example>&lt;script&gt;$1</a>https://b.example",
    );
    answer = () =>
      new Response('{"a":"NAME"}', { headers: { "Content-Type": "application/json" } });
    expect(JSON.parse((await scene.get("/?name=%22,%22b%22:%22")).body)).toEqual({ a: '","b":"' });
  });

  test("that arrives in pieces is changed as a whole", async () => {
    await use({ response: { body_replace: [{ regex: "secret", with: "" }] } });
    answer = () =>
      new Response(
        new ReadableStream({
          async start(controller) {
            for (const piece of ["a sec", "ret b ", "secr", "et\u00e9".slice(0, 2)]) {
              controller.enqueue(new TextEncoder().encode(piece));
              await Bun.sleep(1);
            }
            controller.close();
          },
        }),
        { headers: { "Content-Type": "text/plain" } },
      );
    expect((await scene.get("/")).body).toBe("a  b ");
  });

  test.each([
    ["compressed", { "Content-Type": "text/plain", "Content-Encoding": "gzip" }],
    ["a picture", { "Content-Type": "image/png" }],
    ["a part", { "Content-Type": "text/plain", "Content-Range": "bytes 0-1/9" }],
    ["of another charset", { "Content-Type": "text/plain; charset=iso-8859-1" }],
  ])("that is %s is unchanged", async (what, headers) => {
    await use({ response: { body_replace: [{ regex: "secret", with: "" }] } });
    answer = () =>
      new Response(what === "compressed" ? gzipSync("the secret") : "the secret", {
        headers: { ...headers, ETag: '"abc"' },
      });
    const { body, headers: got } = await scene.get("/");
    expect(body).toBe("the secret");
    expect(got.get("etag")).toBe('"abc"');
  });

  test("of HEAD has no length, because that of the target differs", async () => {
    await use({ response: { body_replace: [{ regex: "o", with: "oo" }] } });
    answer = () => new Response("ok", { headers: { "Content-Type": "text/plain", ETag: '"x"' } });
    const { headers } = await scene.send("HEAD", "/");
    expect(headers.get("content-length")).toBeNull();
    expect(headers.get("etag")).toBe('W/"x"');
  });

  test.each([
    ["whose length is known", false],
    ["whose length is not", true],
  ])("%s is changed up to 1 MiB, and passes unchanged above", async (_, isStreamed) => {
    await use({ response: { body_replace: [{ regex: "^a", with: "b" }] } });
    const of = (bytes: number) => {
      const text = "a".repeat(bytes);
      const body = isStreamed ? new Blob([text]).stream() : text;
      return new Response(body, { headers: { "Content-Type": "text/plain" } });
    };
    answer = () => of(MIB);
    expect((await scene.get("/")).body).toBe(`b${"a".repeat(MIB - 1)}`);
    answer = () => of(MIB + 1);
    expect((await scene.get("/")).body).toBe("a".repeat(MIB + 1));
  });

  test("that the gateway creates for a failed request is unchanged", async () => {
    await use({ response: { headers: { set: { "X-Set": "1" } }, status_map: { "5xx": 200 } } });
    await scene.apply({ services: [{ name: "web", targets: [] }] });
    const { status, headers } = await scene.get("/");
    expect(status).toBe(503);
    expect(headers.has("x-set")).toBe(false);
    await scene.apply({ services: [{ name: "web", targets: [{ port: scene.originPort }] }] });
  });
});

test("several instances all run", async () => {
  answer = () => new Response("ok");
  await scene.apply({
    plugins: [
      { name: "transform", config: { request: { headers: { set: { "X-One": "1" } } } } },
      {
        name: "transform",
        label: "two",
        config: { request: { headers: { set: { "X-Two": "2" } } } },
      },
    ],
  });
  const { seen } = await scene.get("/");
  expect(seen?.headers).toMatchObject({ "x-one": "1", "x-two": "2" });
});

test.each([
  [{ request: { headers: { set: { Host: "x" } } } }, "request.headers.set.Host"],
  [
    { request: { headers: { remove: ["content-length"] } } },
    "request.headers.remove.content-length",
  ],
  [{ request: { headers: { rename: { a: "b c" } } } }, "request.headers.rename.b c"],
  [{ response: { headers: { add: { "Transfer-Encoding": "x" } } } }, "response.headers.add"],
  [{ response: { headers: { set: { a: "b\nc" } } } }, "response.headers.set.a"],
  [{ request: { body_json: { set: { "__proto__.x": 1 } } } }, "request.body_json.set.__proto__.x"],
  [{ request: { body_json: { remove: ["a..b"] } } }, "request.body_json.remove.a..b"],
  [{ request: { body_json: { remove: ["a"] }, body_template: "x" } }, "request.body_template"],
  [{ request: { method: "CONNECT" } }, "request.method"],
  [{ request: { host: "a b" } }, "request.host"],
  [{ request: { host: "${request.header.x}/b" } }, "request.host"],
  [
    { response: { body_replace: [{ regex: "a", with: "${path.$1}" }] } },
    "response.body_replace[0]",
  ],
])("refuses %j", (config, path) => {
  const check = transform.check as unknown as (config: unknown) => { readonly path: string }[];
  const [problem] = check(decode(transform.config, config));
  expect(problem?.path).toStartWith(path);
});
