// HTTP/2 on our own engine with programs that others have written, over cleartext and TLS.
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { needs } from "../../support/needs.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";

const LONG = "y".repeat(3_000_000);

describe.each(["http", "https"] as const)("over %s", (protocol) => {
  let origin: Origin;
  let gateway: RunningDataPlane;

  beforeAll(async () => {
    origin = startOrigin({
      answer: ({ method, body, target }) =>
        reply(method === "POST" ? `${body.length} bytes` : target === "/long" ? LONG : "hello"),
    });
    const tls = protocol === "https" ? { tls: await selfSigned() } : {};
    gateway = await startDataPlane({
      ...tls,
      listener: { engine: "sluice", max_body_bytes: 4_000_000 },
      services: [{ name: "origin", targets: [{ port: origin.port }] }],
      routes: [{ name: "all", service_id: "origin" }],
    });
  });
  afterAll(async () => {
    await gateway.stop();
    origin.stop();
  });

  const { test: curlTest } = needs("curl");

  async function curl(path: string, ...options: string[]): Promise<string> {
    const process = Bun.spawn(
      [
        ...["curl", "--silent", "--show-error", "--insecure", "--max-time", "60"],
        ...["--write-out", " %{http_version} %{http_code}", ...options],
        ...(protocol === "http" ? ["--http2-prior-knowledge"] : ["--http2"]),
        `${protocol}://127.0.0.1:${gateway.port}${path}`,
      ],
      { stdout: "pipe", stderr: "pipe" },
    );
    const [out, problem] = await Promise.all([
      new Response(process.stdout).text(),
      new Response(process.stderr).text(),
    ]);
    return `${out}${problem}`;
  }

  curlTest("curl gets a response", async () => {
    expect(await curl("/")).toBe("hello 2 200");
  });

  curlTest("curl gets a long one whole", async () => {
    const out = await curl("/long");
    expect([out.length, out.slice(-6)]).toEqual([LONG.length + 6, " 2 200"]);
  });

  curlTest("curl sends a body that does not fit into a window", async () => {
    const body = `@${import.meta.path}`;
    const size = Bun.file(import.meta.path).size;
    expect(await curl("/", "--data-binary", body)).toBe(`${size} bytes 2 200`);
  });

  curlTest("curl sees the refusal of an upload that is too large, and not an error", async () => {
    const file = `${import.meta.dir}/../../../node_modules/typescript/lib/typescript.js`;
    for (let time = 0; time < 5; time++)
      expect(await curl("/", "--data-binary", `@${file}`, "--header", "Expect:")).toEndWith(
        " 2 413",
      );
  });
});
