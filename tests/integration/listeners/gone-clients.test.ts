// Clients that reset their connection before the gateway accepts it: Bun knows no address of them, and they stay counted nowhere.
import { expect, test } from "bun:test";
import { leaveUnaccepted } from "../../support/gone-clients.ts";
import { eventually } from "../../support/poll.ts";
import { sendRaw } from "../../support/raw-http.ts";
import { startScriptedScene } from "../../support/scripted-scene.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const PROXY = "PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\n";
const GET = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
/** More would be refused. */
const MOST = 3;

const proxied = { proxy_protocol: true, trusted_proxies: ["127.0.0.0/8"] };

test.each([
  [{}, ""],
  [proxied, PROXY],
] as const)("%j", async (more, prefix) => {
  const scene = await startScriptedScene({
    // Shorter than the second in which the gateway looks for clients that are late.
    settings: { limits: { preread_timeout: 500, head_read_timeout: 500 } },
    listener: { max_connections: MOST, ...more },
  });
  try {
    scene.origin.answer = OK;
    for (const text of ["", "GET /pa", `${prefix}GET /half`])
      leaveUnaccepted(scene.port, MOST * 2, text);
    // A late one is closed by the same timer after those that are gone.
    expect(await sendRaw(prefix === "" ? "" : PROXY.slice(0, 9), { port: scene.port })).toBe("");
    await eventually(async () => {
      const response = await sendRaw(prefix + GET, { port: scene.port });
      return response.startsWith("HTTP/1.1 200 ");
    });
  } finally {
    await scene.stop();
  }
});
