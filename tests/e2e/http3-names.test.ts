// Certificates by name over HTTP/3, beside our own engine on the same port number: Chromium shows which one it was given.
import { expect } from "bun:test";
import { createHash, X509Certificate } from "node:crypto";
import type { Browser } from "playwright-core";
import { Authority, type Leaf } from "../support/authority.ts";
import { openBrowser } from "../support/browser.ts";
import { freePort } from "../support/data-plane.ts";
import { executable } from "../support/executable.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { connect as connectTls } from "node:tls";

const { afterAll, beforeAll, test } = needs("chromium", "executable");

const NAMES = ["a.h3.test", "x.b.h3.test", "y.b.h3.test", "c.h3.test"];
const port = freePort();
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ headers }) =>
    new Response(`<!doctype html><h1>${headers.get("via")}</h1>`, {
      headers: { "Content-Type": "text/html" },
    }),
});

let gateway: Gateway;
let browser: Browser;
let authority: Authority;
let certificateId = "";
const leaves: { [name: string]: Leaf } = {};

/** Accepted whoever has signed it. */
const pin = ({ cert }: Leaf): string =>
  createHash("sha256")
    .update(new X509Certificate(cert).publicKey.export({ type: "spki", format: "der" }))
    .digest("base64");
const uploaded = ({ cert, key }: Leaf) => ({ certificate: cert, private_key: key });

beforeAll(async () => {
  authority = await Authority.create("HTTP/3 tests");
  const sign = async (commonName: string, name: string): Promise<Leaf> => {
    const leaf = await authority.sign({ names: [name], commonName });
    leaves[commonName] = leaf;
    return leaf;
  };
  const [first, wildcard] = [await sign("first", "a.h3.test"), await sign("many", "*.b.h3.test")];
  await sign("second", "a.h3.test");
  gateway = await startGateway({ binary: executable, workers: 2 });
  const post = (path: string, body: object) => gateway.ok("POST", `/api/v1/${path}`, body);
  ({ id: certificateId } = await post("certificates", { name: "a", ...uploaded(first) }));
  await post("certificates", { name: "b", ...uploaded(wildcard) });
  const own = { name: "own", address: "127.0.0.1", port, protocol: "https", engine: "sluice" };
  await post("listeners", { ...own, http3: true });
  await post("services", { name: "app", targets: [{ host: "127.0.0.1", port: origin.port }] });
  await post("routes", { name: "app", service_id: "app" });
  browser = await openBrowser({
    quicTo: NAMES.map((name) => `${name}:${port}`),
    args: [
      "--host-resolver-rules=MAP *.h3.test 127.0.0.1",
      `--ignore-certificate-errors-spki-list=${Object.values(leaves).map(pin).join(",")}`,
    ],
  });
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
  await origin.stop(true);
});

/** On a connection of its own; null: the browser does not accept the certificate. */
async function over3(name: string): Promise<readonly unknown[] | null> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const response = await page.goto(`https://${name}:${port}/`);
    const { protocol, subjectName } = (await response?.securityDetails()) ?? {};
    return [protocol, subjectName, await page.textContent("h1")];
  } catch (error) {
    if (!String(error).includes("net::ERR_QUIC_PROTOCOL_ERROR")) throw error;
    return null;
  } finally {
    await context.close();
  }
}

/** The same over TCP. */
const overTcp = (servername: string): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const socket = connectTls({ port, servername, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subject.CN);
      socket.destroy();
    });
    socket.on("error", reject);
  });

test("each name has its certificate, also a new one, as over TCP", async () => {
  const seen = (subject: string) => ["QUIC", subject, "3 sluice"];
  expect(await over3("a.h3.test")).toEqual(seen("first"));
  expect(await over3("x.b.h3.test")).toEqual(seen("many"));
  expect(await over3("y.b.h3.test")).toEqual(seen("many"));
  // It gets the default certificate.
  expect(await over3("c.h3.test")).toBeNull();
  expect([await overTcp("a.h3.test"), await overTcp("x.b.h3.test")]).toEqual(["first", "many"]);
  const path = `/api/v1/certificates/${certificateId}`;
  await gateway.ok("PATCH", path, uploaded(leaves["second"]!));
  // The server of the former certificate goes on with its connections, and accepts no others once the new one is bound.
  await eventually(async () => (await over3("a.h3.test"))?.[1] === "second");
  for (let count = 0; count < 5; count++) {
    expect(await over3("a.h3.test")).toEqual(seen("second"));
    expect(await over3("x.b.h3.test")).toEqual(seen("many"));
  }
  expect(await overTcp("a.h3.test")).toBe("second");
});
