// Via names the protocol that a request came by (RFC 9110 section 7.6.3), on every engine.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { selfSigned } from "../../support/certificate.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { engines } from "../../support/engines.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { sendRaw } from "../../support/raw-http.ts";

let origin: Origin;
beforeAll(() => {
  origin = startOrigin({ answer: ({ fields }) => reply(new Map(fields).get("via") ?? "none") });
});
afterAll(() => origin.stop());

describe.each(engines)("on engine %s", (engine) => {
  let gateway: RunningDataPlane;
  beforeAll(async () => {
    gateway = await startDataPlane({
      tls: await selfSigned(),
      listener: { engine, http3: true },
      services: [{ name: "origin", targets: [{ port: origin.port }] }],
      routes: [{ name: "all", service_id: "origin" }],
    });
  });
  afterAll(() => gateway.stop());

  const raw = async (version: string, field = "") => {
    const head = `GET / HTTP/${version}\r\nHost: h\r\nConnection: close\r\n${field}\r\n`;
    const response = await sendRaw(head, { port: gateway.port, tls: true });
    return response.slice(response.indexOf("\r\n\r\n") + 4);
  };
  const overHttp2 = async (headers: Record<string, string> = {}): Promise<string> => {
    const session = connectHttp2(`https://127.0.0.1:${gateway.port}`, {
      rejectUnauthorized: false,
    });
    try {
      return await new Promise((resolve, reject) => {
        session.on("error", reject);
        const request = session.request({ ":path": "/", ...headers } as IncomingHttpHeaders);
        let text = "";
        request.setEncoding("latin1");
        request.on("data", (chunk: string) => {
          text += chunk;
        });
        request.on("end", () => resolve(text));
        request.on("error", reject);
      });
    } finally {
      session.destroy();
    }
  };
  // Bun.serve does not say by which version a request came.
  const seen = (version: string) => (engine === "bun" ? "1.1" : version);

  test("HTTP/1.0 and HTTP/1.1", async () => {
    expect(await raw("1.1")).toBe("1.1 sluice");
    expect(await raw("1.0")).toBe(`${seen("1.0")} sluice`);
    expect(await raw("1.1", "Via: 2 first\r\n")).toBe("2 first, 1.1 sluice");
  });

  test("HTTP/2", async () => {
    expect(await overHttp2()).toBe(`${seen("2")} sluice`);
    expect(await overHttp2({ via: "1.1 first" })).toBe(`1.1 first, ${seen("2")} sluice`);
  });

  test("HTTP/3", async () => {
    const response = await fetch(`https://127.0.0.1:${gateway.port}/`, {
      protocol: "http3",
      tls: { rejectUnauthorized: false },
    } as RequestInit);
    expect(await response.text()).toBe(`${seen("3")} sluice`);
  });
});
