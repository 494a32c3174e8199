// What a CA or the proxy in front of it says reaches the operator: bounded, on one line, never HTML.
import { afterAll, describe, expect, test } from "bun:test";
import { AcmeFailure } from "../../../src/acme/failure.ts";
import { AcmeTransport } from "../../../src/acme/transport.ts";
import { errorTextOf, quote } from "../../../src/net/quote.ts";

let response = () => new Response(null, { status: 500 });
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => response() });
afterAll(() => server.stop(true));

const said = async (body: string, type: string): Promise<string> => {
  response = () => new Response(body, { status: 503, headers: { "content-type": type } });
  const transport = new AcmeTransport({
    cas: "",
    fetch,
    timeoutMs: 5000,
    now: Date.now,
    signal: new AbortController().signal,
  });
  return await transport.request(`http://127.0.0.1:${server.port}/`, "get").then(
    () => "",
    (error: unknown) => {
      expect(error).toBeInstanceOf(AcmeFailure);
      return (error as Error).message.replace(`127.0.0.1:${server.port}: `, "");
    },
  );
};

test.each([
  ['{"error":{"code":503,"message":"busy"}}', "application/json", " (busy)", "of a cloud"],
  [
    '{"message":"no such\\u001b[2J tenant"}',
    "application/json",
    " (no such?[2J tenant)",
    "controls",
  ],
  ["overloaded\n", "text/plain", " (overloaded)", "a line of a proxy"],
  ["<html>503</html>", "text/html", "", "a page"],
  ["null", "application/json", " (null)", "no object"],
  ["", "text/plain", "", "nothing"],
])("%s is shown as it reads", async (body, type, words) => {
  expect(await said(body, type)).toBe(`the CA returned status 503${words}`);
});

test("a long text is cut", async () => {
  expect((await said("x".repeat(5000), "text/plain")).length).toBeLessThan(250);
});

describe("a secret in an error of another server", () => {
  const secret = 'c4n"ry+key/1';
  test.each([
    ["as it is", secret],
    ["in a URL", encodeURIComponent(secret)],
    ["in JSON", JSON.stringify(secret).slice(1, -1)],
    ["in base64", Buffer.from(secret).toString("base64")],
  ])("is masked %s", (_, form) => {
    const text = quote(errorTextOf(JSON.stringify({ message: `bad key ${form}.` })), [secret]);
    expect(text).toStartWith("bad key ***");
    expect(text).not.toContain(form);
  });
});
