// The dialer decides after name resolution and connects to what it decided on. Names are resolved by the test; what is refused is never dialed.
import { describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { Dialer, type Fetch } from "../../../src/dialer/dialer.ts";

const METADATA = "169.254.169.254";

function scene(names: Readonly<Record<string, readonly (readonly string[])[]>>) {
  const sent: { url: string; host: string | null; serverName: string | undefined }[] = [];
  const asked: string[] = [];
  const fetch: Fetch = (url, init) => {
    const { serverName } = init?.tls ?? {};
    sent.push({ url: String(url), host: new Headers(init?.headers).get("host"), serverName });
    return Promise.resolve(new Response(null, { status: 302, headers: { location: "/" } }));
  };
  const turn = new Map<string, number>();
  const resolve = (name: string) => {
    asked.push(name);
    const at = turn.get(name) ?? 0;
    turn.set(name, at + 1);
    const answers = names[name] ?? [];
    return Promise.resolve(answers[Math.min(at, answers.length - 1)] ?? []);
  };
  const management = [{ address: "127.0.0.1", port: 9080 }];
  const rules = () => ({ permitted: [], management });
  return { dialer: new Dialer({ rules, resolve, fetch }), sent, asked };
}

describe("a request", () => {
  test("goes to the address that was decided on, under its name", async () => {
    const { dialer, sent } = scene({ "auth.test": [["192.0.2.7"], [METADATA]] });
    await dialer.fetch("https://auth.test:8443/verify?a=b");
    expect(sent).toEqual([
      { url: "https://192.0.2.7:8443/verify?a=b", host: "auth.test:8443", serverName: "auth.test" },
    ]);
  });

  test("is refused for a name with refused addresses only, and is not sent", async () => {
    const { dialer, sent } = scene({ "auth.test": [[METADATA]] });
    const refused = dialer.fetch("http://auth.test/");
    expect(refused).rejects.toThrow("is a link-local or metadata address");
    await refused.catch(() => undefined);
    expect(sent).toEqual([]);
  });

  test("uses the other addresses of a name", async () => {
    const { dialer, sent } = scene({ "auth.test": [[METADATA, "192.0.2.8"]] });
    await dialer.fetch("http://auth.test/");
    expect(sent.map(({ url }) => url)).toEqual(["http://192.0.2.8/"]);
  });

  test.each([
    "http://169.254.169.254/",
    "http://[fd00:ec2::254]/",
    "http://0xa9fea9fe/",
    "http://127.0.0.1:9080/",
  ])("to %s is refused without a lookup", async (url) => {
    const { dialer, sent, asked } = scene({});
    const error: unknown = await dialer.fetch(url).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "REFUSED_DESTINATION" });
    expect([...sent, ...asked]).toEqual([]);
  });

  test("to a name of the management API is refused", async () => {
    const { dialer, sent } = scene({ "admin.test": [["127.0.0.1"]] });
    expect(dialer.fetch("http://admin.test:9080/")).rejects.toThrow("the management API itself");
    await dialer.fetch("http://admin.test:9091/");
    expect(sent.map(({ url }) => url)).toEqual(["http://127.0.0.1:9091/"]);
  });

  test("follows no redirect", async () => {
    const { dialer, sent } = scene({});
    const { status } = await dialer.fetch("http://192.0.2.9/", { redirect: "follow" });
    expect([status, sent.length]).toEqual([302, 1]);
  });

  test("asks once for a name of many requests", async () => {
    const { dialer, asked } = scene({ "auth.test": [["192.0.2.7"]] });
    for (let at = 0; at < 1000; at++) await dialer.fetch("http://auth.test/");
    expect(asked).toEqual(["auth.test"]);
  });
});

describe("a socket", () => {
  test("to a refused address throws", () => {
    const { dialer } = scene({});
    expect(() => dialer.connect({ host: METADATA, port: 514 })).toThrow("link-local or metadata");
    expect(() => dialer.connectTls({ host: METADATA, port: 636 })).toThrow(
      "link-local or metadata",
    );
  });

  test("to a name emits the refusal", async () => {
    const { dialer } = scene({ "logs.test": [[METADATA]] });
    const { promise, resolve } = Promise.withResolvers<Error>();
    dialer.connect({ host: "logs.test", port: 514 }).once("error", resolve);
    expect(await promise).toMatchObject({ code: "REFUSED_DESTINATION" });
  });

  test("connects to loopback", async () => {
    const server = createServer((socket) => socket.end("hello"));
    const { promise: listening, resolve } = Promise.withResolvers<void>();
    server.listen(0, "127.0.0.1", resolve);
    await listening;
    const { port } = server.address() as { port: number };
    const { dialer } = scene({ "logs.test": [["127.0.0.1"]] });
    const received = Promise.withResolvers<string>();
    dialer
      .connect({ host: "logs.test", port })
      .on("data", (bytes) => received.resolve(String(bytes)));
    expect(await received.promise).toBe("hello");
    server.close();
  });

  test("for datagrams gets addresses that were decided on", async () => {
    const { dialer } = scene({ "logs.test": [[METADATA, "192.0.2.1"]] });
    expect(await dialer.addressesOf({ host: "logs.test", port: 514 })).toEqual(["192.0.2.1"]);
  });
});
