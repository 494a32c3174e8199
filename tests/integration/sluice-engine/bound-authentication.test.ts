// Targets whose authentication holds for a connection (NTLM, Negotiate): no client gets that of another, and HTTP/2 makes room for HTTP/1.1.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { curl } from "../../support/curl.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type Engine, engines } from "../../support/engines.ts";
import { type Field, H2Client } from "../../support/h2-client.ts";
import { needs } from "../../support/needs.ts";
import { signIn, startNtlmTarget } from "../../support/ntlm-target.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw, type RawConnection } from "../../support/raw-http.ts";

const target = startNtlmTarget();
afterAll(() => target.stop());
const cleanups = cleanupsOf(afterEach);

const scene = async (listener: object): Promise<RunningDataPlane> =>
  await startDataPlane({
    ...listener,
    services: [{ name: "origin", targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "origin" }],
  });

async function client(port: number): Promise<RawConnection> {
  const connection = await connectRaw({ port });
  cleanups.push(() => connection.close());
  return connection;
}

/** Status of the next response. */
async function ask(connection: RawConnection, lines = ""): Promise<string> {
  const from = connection.received.length;
  connection.write(`GET / HTTP/1.1\r\nHost: h\r\n${lines}\r\n`);
  await eventually(() => /(?:login|secret)$/.test(connection.received.slice(from)), {
    intervalMs: 1,
  });
  return connection.received.slice(from + 9, from + 12);
}

describe.each(engines)("on engine %s", (engine: Engine) => {
  let gateway: RunningDataPlane;
  beforeAll(async () => {
    gateway = await scene({ listener: { engine } });
  });
  afterAll(() => gateway.stop());

  test("no client gets a connection that another has authenticated on", async () => {
    const first = await client(gateway.port);
    const isOwn = engine === "sluice";
    expect(await ask(first)).toBe("401");
    expect(await ask(first, signIn(1))).toBe("401");
    // Engines that do not own their clients' connections cannot tell whose the connection to the target is.
    expect(await ask(first, signIn(3))).toBe(isOwn ? "200" : "401");
    for (let count = 0; count < 5; count++) {
      const other = await client(gateway.port);
      expect([await ask(other), await ask(other, signIn(3))]).toEqual(["401", "401"]);
    }
    // As long as the client is there.
    expect(await ask(first)).toBe(isOwn ? "200" : "401");
    expect(target.signedIn).toBe(isOwn ? 1 : 0);
    first.close();
    await eventually(() => target.signedIn === 0);
  });
});

describe("over HTTP/2", () => {
  let gateway: RunningDataPlane;
  beforeAll(async () => {
    gateway = await scene({ tls: await selfSigned(), listener: { engine: "sluice" } });
  });
  afterAll(() => gateway.stop());

  const fields = (path: string): Field[] => [
    [":method", "GET"],
    [":scheme", "https"],
    [":authority", "localhost"],
    [":path", path],
  ];
  const connected = async () => {
    const connection = await H2Client.connect({ port: gateway.port, tls: true });
    cleanups.push(() => connection.close());
    return connection;
  };

  test.each([
    ["401", "WWW-Authenticate: NTLM", "reset"],
    ["401", "www-authenticate: negotiate", "reset"],
    ["401", "WWW-Authenticate: Negotiate, NTLM", "reset"],
    ["401", "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM TlRM==", "reset"],
    ["407", "Proxy-Authenticate: NTLM", "reset"],
    ["chunked", "WWW-Authenticate: Negotiate", "reset"],
    // The client has a choice, and takes HTTP/1.1 by itself where it chooses the other.
    ["401", 'WWW-Authenticate: Negotiate\r\nWWW-Authenticate: Basic realm="a"', "401"],
    ["401", 'WWW-Authenticate: Basic realm="a, NTLM", charset="UTF-8"', "401"],
    ["401", "WWW-Authenticate: Bearer", "401"],
    ["401", "X: NTLM", "401"],
    ["403", "WWW-Authenticate: NTLM", "403"],
    ["200", "WWW-Authenticate: Negotiate abc=", "200"],
  ])("a target's %s with %p: %s", async (status, lines, outcome) => {
    const connection = await connected();
    const path = `/challenge?${encodeURIComponent(`${status}&${lines}`)}`;
    const before = connection.headers(fields("/challenge?200%26X:%201"));
    const result = await connection.result(connection.headers(fields(path)));
    expect(result.outcome).toBe(outcome);
    if (outcome === "reset") expect([result.reset, result.status]).toEqual([13, null]);
    // The other streams of the connection go on.
    expect((await connection.result(before)).outcome).toBe("200");
    const after = connection.headers(fields("/challenge?200%26X:%201"));
    expect((await connection.result(after)).outcome).toBe("200");
  });

  needs("curl").test("curl comes back by HTTP/1.1, and authenticates there", async () => {
    const url = `https://127.0.0.1:${gateway.port}/`;
    const refused = await curl(url, ["--http2"]);
    expect([refused.status, refused.version, refused.text()]).toEqual([401, "1.1", "login"]);
    const account = ["--ntlm", "--user", "u:p"];
    const signedIn = await curl(url, ["--http2", ...account]);
    expect([signedIn.status, signedIn.version, signedIn.text()]).toEqual([200, "1.1", "secret"]);
  });
});
