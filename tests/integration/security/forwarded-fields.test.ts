// What the gateway says of a client to its targets: no client can remove it, disguise it or say it in the gateway's place.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type LenientScene, startLenientScene } from "../../support/lenient-scene.ts";

let untrusting: LenientScene;
let trusting: LenientScene;
let listenerTrust: LenientScene;
let otherTrust: LenientScene;
beforeAll(async () => {
  untrusting = await startLenientScene();
  trusting = await startLenientScene({
    settings: { trusted_proxies: ["127.0.0.0/8", "10.0.0.0/8", "2001:db8:1::/48"] },
  });
  listenerTrust = await startLenientScene({ listener: { trusted_proxies: ["127.0.0.1"] } });
  otherTrust = await startLenientScene({ settings: { trusted_proxies: ["192.0.2.1"] } });
});
afterAll(() =>
  Promise.all([untrusting, trusting, listenerTrust, otherTrust].map((scene) => scene.stop())),
);

/** Fields that reached the origin for a request with these lines: lower-case names, everything but letters and digits read as `-`, each with all its values. */
async function sent(
  scene: LenientScene,
  lines: readonly string[],
): Promise<Record<string, string[]>> {
  const head = lines.map((line) => `${line}\r\n`).join("");
  const seen = await scene.probe(`GET / HTTP/1.1\r\nHost: h.test:81\r\n${head}\r\n`);
  expect(seen).toMatchObject({ outcome: "200", ambiguous: [], canary: "200 /canary" });
  const fields: Record<string, string[]> = {};
  for (const [name, value] of seen.executed[0]!.fields)
    fields[name] = [...(fields[name] ?? []), value];
  // Another one for each request.
  expect(fields["x-request-id"]).toEqual([expect.stringMatching(UUID)]);
  delete fields["x-request-id"];
  return fields;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The ids that reached the origin, and the one that the client received. */
async function idsOf(scene: LenientScene, lines: readonly string[]) {
  const head = lines.map((line) => `${line}\r\n`).join("");
  const seen = await scene.probe(`GET / HTTP/1.1\r\nHost: h.test:81\r\n${head}\r\n`);
  return seen.executed[0]!.fields.filter(([name]) => name === "x-request-id").map(([, id]) => id);
}

/** What the gateway says by itself of a client on 127.0.0.1. */
const truth = (scene: LenientScene) => ({
  host: ["h.test:81"],
  "x-forwarded-for": ["127.0.0.1"],
  "x-real-ip": ["127.0.0.1"],
  "x-forwarded-host": ["h.test:81"],
  "x-forwarded-proto": ["http"],
  "x-forwarded-port": [String(scene.gateway.port)],
  via: ["1.1 sluice"],
  "cdn-loop": ["sluice-test"],
});
const OURS = Object.keys({
  host: 0,
  "x-forwarded-for": 0,
  "x-real-ip": 0,
  "x-forwarded-host": 0,
  "x-forwarded-proto": 0,
  "x-forwarded-port": 0,
  via: 0,
  "cdn-loop": 0,
});

describe("the id of a request", () => {
  test.each([
    "X-Request-Id: mine",
    "X_Request_Id: mine",
    "X-Request-Id: a\r\nX-Request-Id: b",
    "Connection: x-request-id",
  ])("is the gateway's own, whatever a client sends: %s", async (line) => {
    expect(await idsOf(untrusting, [line])).toEqual([expect.stringMatching(UUID)]);
  });

  test("is that of a trusted proxy, when it is harmless everywhere", async () => {
    expect(await idsOf(trusting, ["X-Request-Id: proxy.1/2"])).toEqual(["proxy.1/2"]);
    for (const id of ["a b", "<b>", "x".repeat(129), "ü"])
      expect(await idsOf(trusting, [`X-Request-Id: ${id}`])).toEqual([expect.stringMatching(UUID)]);
  });
});

describe("a client cannot strip headers of the gateway by naming them in Connection", () => {
  test.each(OURS)("Connection: %s", async (name) => {
    for (const connection of [
      name,
      name.toUpperCase(),
      `close, ${name}`,
      `keep-alive,${name} ,x`,
      `"${name}", ${name}`,
    ])
      expect(await sent(untrusting, [`Connection: ${connection}`])).toEqual(truth(untrusting));
  });

  test("all of them at once, in one field and in several", async () => {
    expect(await sent(untrusting, [`Connection: ${OURS.join(", ")}`])).toEqual(truth(untrusting));
    expect(
      await sent(
        untrusting,
        OURS.map((name) => `Connection: ${name}`),
      ),
    ).toEqual(truth(untrusting));
  });

  test("nor those of a trusted proxy that passes its Connection on", async () => {
    const fields = await sent(trusting, [
      `Connection: ${OURS.join(", ")}`,
      "X-Forwarded-For: 203.0.113.9",
    ]);
    expect(fields).toEqual({
      ...truth(trusting),
      "x-forwarded-for": ["203.0.113.9, 127.0.0.1"],
      "x-real-ip": ["203.0.113.9"],
    });
  });

  test("its own fields it can", async () => {
    const fields = await sent(untrusting, [
      "Connection: x-mine, x-other",
      "X-Mine: 1",
      "X-Other: 2",
      "X-Kept: 3",
    ]);
    expect(fields).toEqual({ ...truth(untrusting), "x-kept": ["3"] });
  });

  test("content-length it cannot", async () => {
    const seen = await untrusting.probe(
      "POST / HTTP/1.1\r\nHost: h\r\nConnection: content-length, host\r\nContent-Length: 2\r\n\r\nab",
    );
    expect(seen).toMatchObject({ outcome: "200", lines: ["POST /"], ambiguous: [] });
    expect(seen.executed[0]?.header("content-length")).toBe("2");
    expect(seen.executed[0]?.header("host")).toBe("h");
  });
});

/** Bytes that a name may hold beside letters, digits and the hyphen (RFC 9110 section 5.6.2). */
const OTHERS = [..."!#$%&'*+._`|~"];

describe("names that an application reads as ours do not reach it", () => {
  const aliases = [
    "X_Forwarded_For",
    "X_Forwarded-For",
    "X-Forwarded_For",
    "x_forwarded_proto",
    "X_Forwarded_Host",
    "X_Forwarded_Port",
    "X_FORWARDED_PREFIX",
    "X_Forwarded_Server",
    "X_Forwarded_Ssl",
    "X_Forwarded_Scheme",
    "X_Real_IP",
    "X-Real_IP",
    "X_Real-IP",
    "X_Consumer_Id",
    "X_Consumer_Username",
    "X-Consumer_Groups",
    "X_Credential_Identifier",
    "X_Anonymous_Consumer",
    "X_Authenticated_Userid",
    "X_Auth_User",
    "X_Auth_Request_User",
    "X_Auth_Request_Email",
    "CDN_Loop",
    "Content_Length",
    "Transfer_Encoding",
    "Proxy_Authorization",
    "Client_Cert",
    "X_Forwarded",
    "Content_Type_x",
  ];
  test.each(aliases.filter((name) => name !== "Content_Type_x"))("%s", async (name) => {
    for (const scene of [untrusting, trusting])
      expect(await sent(scene, [`${name}: evil`])).toEqual(truth(scene));
  });

  const ours = ["X-Forwarded-For", "X-Real-IP", "X-Consumer-Id", "X-Auth-User", "Client-Cert"];
  test.each(OTHERS)("with %s in the place of each hyphen, and of the last one", async (byte) => {
    const lines = ours.flatMap((name) => [
      `${name.replaceAll("-", byte)}: evil`,
      `${name.replace(/-(?=[^-]*$)/, byte)}: evil`,
    ]);
    for (const scene of [untrusting, trusting])
      expect(await sent(scene, lines)).toEqual(truth(scene));
  });

  test("Proxy, which CGI makes a variable of that names a proxy (httpoxy)", async () => {
    for (const scene of [untrusting, trusting])
      for (const name of ["Proxy", "PROXY", "proxy"])
        expect(await sent(scene, [`${name}: http://evil.test`])).toEqual(truth(scene));
  });

  test.each(["X_Custom", "my_field", "x_a-b", "my.field", "Proxied"])(
    "%s is not special and passes",
    async (name) => {
      expect(await sent(untrusting, [`${name}: v`])).toEqual({
        ...truth(untrusting),
        [name.toLowerCase().replace(/[^0-9a-z]/g, "-")]: ["v"],
      });
    },
  );
});

describe("forwarding headers of an untrusted client are dropped", () => {
  const spoofs = [
    "X-Forwarded-For: 10.0.0.1",
    "X-Forwarded-For: 127.0.0.1, 10.0.0.1",
    "X-Forwarded-For: ::1",
    "X-Forwarded-For: unknown",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Host: evil.test",
    "X-Forwarded-Port: 443",
    "X-Forwarded-Prefix: /evil",
    "X-Forwarded-User: evil",
    "X-Forwarded-Groups: evil",
    "X-Forwarded-Server: evil",
    "X-Forwarded-Ssl: on",
    "X-Forwarded-Scheme: https",
    "X-Real-IP: 10.0.0.1",
    "Forwarded: for=10.0.0.1;proto=https;host=evil.test",
    'Forwarded: for="[::1]"',
  ];
  test.each(spoofs)("%s", async (line) => {
    for (const scene of [untrusting, otherTrust]) {
      expect(await sent(scene, [line])).toEqual(truth(scene));
      expect(await sent(scene, [line.toUpperCase()])).toEqual(truth(scene));
      expect(await sent(scene, [line, line])).toEqual(truth(scene));
    }
  });

  test("all at once", async () => {
    expect(await sent(untrusting, spoofs)).toEqual(truth(untrusting));
  });
});

describe("forwarding headers of a trusted proxy count, read from the right", () => {
  const rows: [line: string, client: string, forwardedFor: string, why: string][] = [
    ["X-Forwarded-For: 203.0.113.9", "203.0.113.9", "203.0.113.9, 127.0.0.1", "one address"],
    [
      "X-Forwarded-For: 6.6.6.6, 203.0.113.9",
      "203.0.113.9",
      "6.6.6.6, 203.0.113.9, 127.0.0.1",
      "what stands to the left came from the client",
    ],
    [
      "X-Forwarded-For: 203.0.113.9, 10.1.2.3",
      "203.0.113.9",
      "203.0.113.9, 10.1.2.3, 127.0.0.1",
      "a chain of trusted proxies",
    ],
    [
      "X-Forwarded-For: 6.6.6.6, 203.0.113.9, 10.1.2.3, 10.9.9.9",
      "203.0.113.9",
      "6.6.6.6, 203.0.113.9, 10.1.2.3, 10.9.9.9, 127.0.0.1",
      "a longer chain",
    ],
    [
      "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 10.1.2.3",
      "203.0.113.9",
      "203.0.113.9, 10.1.2.3, 127.0.0.1",
      "in two fields",
    ],
    ["X-Forwarded-For: 2001:db8:2::9", "2001:db8:2::9", "2001:db8:2::9, 127.0.0.1", "IPv6"],
    [
      "X-Forwarded-For: 2001:db8:2::9, 2001:db8:1::1",
      "2001:db8:2::9",
      "2001:db8:2::9, 2001:db8:1::1, 127.0.0.1",
      "an IPv6 proxy",
    ],
    [
      "X-Forwarded-For: 203.0.113.9:5555",
      "203.0.113.9",
      "203.0.113.9:5555, 127.0.0.1",
      "with a port",
    ],
    [
      "X-Forwarded-For: [2001:db8:2::9]:5555",
      "2001:db8:2::9",
      "[2001:db8:2::9]:5555, 127.0.0.1",
      "IPv6 with a port",
    ],
    [
      "X-Forwarded-For: ::ffff:203.0.113.9",
      "203.0.113.9",
      "::ffff:203.0.113.9, 127.0.0.1",
      "IPv4 in IPv6",
    ],
    [
      "X-Forwarded-For: ::ffff:10.0.0.1",
      "10.0.0.1",
      "::ffff:10.0.0.1, 127.0.0.1",
      "a trusted address, written as IPv6, and nothing before it",
    ],
    ["X-Real-IP: 203.0.113.9", "127.0.0.1", "127.0.0.1", "X-Real-IP alone says nothing"],
  ];
  test.each(rows)("%j: the client is %s", async (line, client, forwardedFor) => {
    const fields = await sent(trusting, line.split("\r\n"));
    expect(fields).toEqual({
      ...truth(trusting),
      "x-forwarded-for": [forwardedFor],
      "x-real-ip": [client],
    });
  });

  test.each([
    ["X-Forwarded-For: unknown", "an obfuscated name"],
    ["X-Forwarded-For: 203.0.113.9, unknown", "an obfuscated name behind an address"],
    ["X-Forwarded-For: 999.1.1.1", "no address"],
    ["X-Forwarded-For: 203.0.113.9, ", "an empty item"],
    ["X-Forwarded-For: ,", "only a comma"],
    ["X-Forwarded-For: 010.0.0.1", "octal to some"],
    ["X-Forwarded-For: 0x7f.1", "hexadecimal to some"],
    ["X-Forwarded-For: 203.0.113.9 evil", "rubbish behind"],
  ])(
    "%j: an invalid address ends the walk, so the client is the proxy that sent it (%s)",
    async (line) => {
      const fields = await sent(trusting, [line]);
      expect(fields["x-real-ip"]).toEqual(["127.0.0.1"]);
    },
  );

  test.each([
    [["X-Forwarded-Proto: https"], { "x-forwarded-proto": ["https"], "x-forwarded-port": ["443"] }],
    [
      ["X-Forwarded-Proto: http, https"],
      { "x-forwarded-proto": ["https"], "x-forwarded-port": ["443"] },
    ],
    [["X-Forwarded-Proto: http"], { "x-forwarded-port": ["80"] }],
    [
      ["X-Forwarded-Proto: https", "X-Forwarded-Port: 8443"],
      { "x-forwarded-proto": ["https"], "x-forwarded-port": ["8443"] },
    ],
    [
      ["X-Forwarded-Proto: https", "X-Forwarded-Host: public.test:8443"],
      {
        "x-forwarded-proto": ["https"],
        "x-forwarded-host": ["public.test"],
        "x-forwarded-port": ["8443"],
      },
    ],
    [
      ["X-Forwarded-Proto: https", "X-Forwarded-Port: 443x"],
      { "x-forwarded-proto": ["https"], "x-forwarded-port": ["443"] },
    ],
    [["X-Forwarded-Proto: javascript"], { "x-forwarded-proto": ["http"] }],
    [["X-Forwarded-Host: public.test"], { "x-forwarded-host": ["public.test"] }],
    [["X-Forwarded-Host: a b"], {}],
    [["X-Forwarded-Host: u@evil/"], {}],
    [["X-Forwarded-Port: 443"], { "x-forwarded-port": ["443"] }],
    [["X-Forwarded-Port: 443x"], {}],
    [["X-Forwarded-Port: -1"], {}],
    [["Forwarded: for=203.0.113.9"], { forwarded: ["for=203.0.113.9"] }],
    [["X-Forwarded-Prefix: /p"], { "x-forwarded-prefix": ["/p"] }],
  ])("%j", async (lines, changed) => {
    expect(await sent(trusting, lines)).toEqual({ ...truth(trusting), ...changed });
  });

  test("proxies of the settings and of the listener form one chain", async () => {
    const scene = await startLenientScene({
      settings: { trusted_proxies: ["10.0.0.0/8"] },
      listener: { trusted_proxies: ["127.0.0.1", "192.0.2.0/24"] },
    });
    const chains = [
      ["6.6.6.6, 203.0.113.9, 192.0.2.7, 10.1.2.3", "203.0.113.9"],
      ["203.0.113.9, 10.1.2.3, 192.0.2.7", "203.0.113.9"],
      ["203.0.113.9, 198.51.100.1, 10.1.2.3", "198.51.100.1"],
      ["10.1.2.3, 192.0.2.7", "10.1.2.3"],
    ] as const;
    for (const [chain, client] of chains)
      expect((await sent(scene, [`X-Forwarded-For: ${chain}`]))["x-real-ip"]).toEqual([client]);
    await scene.stop();
  });

  test("a listener's own trusted_proxies count as well", async () => {
    const fields = await sent(listenerTrust, ["X-Forwarded-For: 203.0.113.9"]);
    expect(fields["x-real-ip"]).toEqual(["203.0.113.9"]);
  });
});

describe("X-Forwarded-Prefix is the prefix that the route strips", () => {
  const route = {
    name: "app",
    service_id: "origin",
    paths: ["/app", "/my files/", "/"].map((value) => ({ type: "prefix" as const, value })),
    strip_path: true,
  };
  let scenes: readonly LenientScene[];
  beforeAll(async () => {
    scenes = [
      await startLenientScene({ routes: [route] }),
      await startLenientScene({
        settings: { trusted_proxies: ["127.0.0.0/8"] },
        routes: [route],
      }),
    ];
  });
  afterAll(() => Promise.all(scenes.map((scene) => scene.stop())));

  const prefixes = async (scene: LenientScene, path: string, lines: readonly string[]) => {
    const head = lines.map((line) => `${line}\r\n`).join("");
    const seen = await scene.probe(`GET ${path} HTTP/1.1\r\nHost: h\r\n${head}\r\n`);
    expect(seen.outcome).toBe("200");
    return seen.executed[0]!.fields.filter(([name]) => name === "x-forwarded-prefix").map(
      ([, value]) => value,
    );
  };

  test.each([
    ["/app/x", [], ["/app"], ["/app"]],
    ["/app", [], ["/app"], ["/app"]],
    ["//app/x", [], ["/app"], ["/app"]],
    ["/my%20files/x", [], ["/my%20files"], ["/my%20files"]],
    ["/other", [], [], []],
    ["/app/x", ["X-Forwarded-Prefix: /outer"], ["/app"], ["/outer/app"]],
    ["/app/x", ["X-Forwarded-Prefix: /a/, /b"], ["/app"], ["/a/b/app"]],
    ["/app/x", ["X-Forwarded-Prefix: //evil.test"], ["/app"], ["/app"]],
    ["/app/x", ["X-Forwarded-Prefix: https://evil.test"], ["/app"], ["/app"]],
    ["/app/x", ["X_Forwarded_Prefix: /evil"], ["/app"], ["/app"]],
    ["/app/x", ["Connection: x-forwarded-prefix"], ["/app"], ["/app"]],
    ["/other", ["X-Forwarded-Prefix: /outer"], [], ["/outer"]],
  ])("%s with %j", async (path, lines, untrusted, trusted) => {
    expect(await prefixes(scenes[0]!, path, lines)).toEqual(untrusted);
    expect(await prefixes(scenes[1]!, path, lines)).toEqual(trusted);
  });

  test("not where the route replaces the prefix", async () => {
    const scene = await startLenientScene({
      routes: [{ ...route, strip_path: false, prefix_rewrite: "/new" }],
    });
    expect(await prefixes(scene, "/app/x", ["X-Forwarded-Prefix: /evil"])).toEqual([]);
    await scene.stop();
  });
});

describe("forged headers cannot match rules on the client's address (class 7 on the data plane)", () => {
  test.each([
    "X-Forwarded-For",
    "X-Real-IP",
    "X-Client-IP",
    "True-Client-IP",
    "CF-Connecting-IP",
    "Forwarded",
  ])("%s does not make a client a member of client_cidrs", async (name) => {
    const scene = await startLenientScene({
      routes: [{ name: "inside", service_id: "origin", client_cidrs: ["10.0.0.0/8"] }],
    });
    const value = name === "Forwarded" ? "for=10.0.0.1" : "10.0.0.1";
    const seen = await scene.probe(`GET / HTTP/1.1\r\nHost: h\r\n${name}: ${value}\r\n\r\n`);
    expect(seen).toMatchObject({ outcome: "404", lines: [] });
    await scene.stop();
  });
});
