// Applications: one request makes a name lead somewhere, over HTTP and HTTPS, and everything that one says has an effect.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:tls";
import { useGateway } from "./client.ts";

const api = useGateway();

let origin: ReturnType<typeof Bun.serve>;
let other: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  const serve = (name: string) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request) => new Response(`${name} ${new URL(request.url).pathname}`),
    });
  origin = serve("origin");
  other = serve("other");
});
afterAll(async () => {
  await origin.stop(true);
  await other.stop(true);
});
const upstream = () => `http://127.0.0.1:${origin.port}`;

async function visit(host: string, path = "/", scheme: "http" | "https" = "http") {
  const { httpPort, httpsPort } = api.gateway;
  const port = scheme === "http" ? httpPort : httpsPort;
  const response = await fetch(`${scheme}://127.0.0.1:${port}${path}`, {
    headers: { host },
    redirect: "manual",
    tls: { rejectUnauthorized: false },
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** Names in the certificate that a client is shown. */
function presented(servername: string) {
  return new Promise<string>((resolve, reject) => {
    const socket = connect(
      { host: "127.0.0.1", port: api.gateway.httpsPort, rejectUnauthorized: false, servername },
      () => {
        resolve(socket.getPeerCertificate().subjectaltname ?? "");
        socket.destroy();
      },
    );
    socket.on("error", reject);
  });
}

describe("one request", () => {
  test("makes a name lead to where it runs, over HTTP and HTTPS", async () => {
    const made = await api.create("/applications", {
      name: "shop",
      domains: ["shop.test"],
      upstream: `${upstream()}/base`,
    });
    expect(made).toMatchObject({
      name: "shop",
      service: { name: "shop", protocol: "http", path: "/base" },
      targets: [{ host: "127.0.0.1", port: origin.port }],
      routes: [{ name: "shop", hosts: ["shop.test"], https_redirect: false }],
      certificate: { source: "self_signed", status: "valid", domains: ["shop.test"] },
      interim_certificate: null,
      drift: [],
      warnings: [],
    });
    expect((await visit("shop.test", "/x")).text).toBe("origin /base/x");
    expect((await visit("shop.test", "/x", "https")).text).toBe("origin /base/x");
    expect(await presented("shop.test")).toBe("DNS:shop.test");
  });
});
