// `sluice hash-password`: what it prints signs in where configuration files hold it, and the password is in no argument.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { needs } from "../../support/needs.ts";
import { reply, startOrigin } from "../../support/origin.ts";

let gateway: Gateway;
const origin = startOrigin({ answer: reply("in") });

beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "site", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
});
afterAll(async () => {
  await gateway?.stop();
  origin.stop();
});

test("a hash in a file lets its password in, and no other one", async () => {
  const { code, stdout, stderr } = await runCommand(["hash-password"], {
    input: "päss word\r\nnot this\n",
  });
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^\$argon2id\$v=19\$\S+\n$/);
  expect(stdout).not.toContain("word");
  const users = [{ username: "alice", password_hash: stdout.trim() }];
  const document = {
    format: 1,
    plugins: [{ name: "basic-auth", route_id: "site", config: { users } }],
  };
  await gateway.ok("POST", "/api/v1/import?mode=merge", document);
  const ask = async (password: string) => {
    const authorization = `Basic ${Buffer.from(`alice:${password}`).toString("base64")}`;
    const url = `http://127.0.0.1:${gateway.httpPort}/`;
    return (await fetch(url, { headers: { authorization } })).status;
  };
  expect(await ask("päss word")).toBe(200);
  expect(await ask("not this")).toBe(401);
});

test("two hashes of one password differ", async () => {
  const [one, other] = await Promise.all(
    ["a\n", "a"].map((input) => runCommand(["hash-password"], { input })),
  );
  expect(one?.stdout).not.toBe(other?.stdout as string);
});

test.each([
  ["nothing", [], "", "the password is empty"],
  ["an empty line", [], "\nsecret\n", "the password is empty"],
  ["the password as an argument", ["secret"], "secret", "unexpected argument"],
])("%s is refused", async (_, words, input, says) => {
  const { code, stdout, stderr } = await runCommand(["hash-password", ...words], { input });
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(says);
});

needs("script").test("a terminal does not show what is typed", async () => {
  const command = `exec '${process.execPath}' '${import.meta.dir}/../../../src/main.ts' hash-password`;
  const child = Bun.spawn(["script", "-qec", command, "/dev/null"], {
    stdin: "pipe",
    stdout: "pipe",
  });
  let shown = "";
  let isTyped = false;
  for await (const chunk of child.stdout) {
    shown += new TextDecoder().decode(chunk);
    if (isTyped || !shown.includes("Password: ")) continue;
    isTyped = true;
    child.stdin.write("secX\x7fret\r");
    await child.stdin.flush();
  }
  expect(await child.exited).toBe(0);
  const hash = /\$argon2id\S+/.exec(shown)?.[0] ?? "";
  expect(shown).not.toContain("sec");
  expect(await Bun.password.verify("secret", hash)).toBe(true);
});
