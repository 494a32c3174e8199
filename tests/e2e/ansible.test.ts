// The playbook in examples/ansible with Debian's Ansible: it configures a gateway, and a second run changes nothing.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";

const playbook = resolve("examples/ansible/site.yml");

needs("ansible-playbook").test(
  "the playbook creates objects once, reports what it would change, and what is refused",
  async () => {
    const home = mkdtempSync(join(tmpdir(), "sluice-ansible-"));
    const gateway = await startGateway({ workers: 1 });
    const { token } = await gateway.ok("POST", "/api/v1/admin/token");
    const user = { email: "a@a.example", name: "A", role: "admin", password: "correct horse b" };
    await gateway.ok("POST", "/api/v1/users", user);
    const authorization = { authorization: `Bearer ${token}` };
    const run = async (...words: string[]) => {
      const child = Bun.spawn(["ansible-playbook", playbook, "-i", "localhost,", ...words], {
        cwd: home,
        env: {
          PATH: process.env["PATH"] ?? "",
          HOME: home,
          LC_ALL: "C.UTF-8",
          ANSIBLE_NOCOLOR: "1",
          SLUICE_URL: gateway.admin,
          SLUICE_TOKEN: token,
        },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      const output =
        (await new Response(child.stdout).text()) + (await new Response(child.stderr).text());
      const changed = Number(/changed=(\d+)/.exec(output)?.[1]);
      return { code: await child.exited, changed, output };
    };
    const routes = async () =>
      (await (await gateway.api("GET", "/api/v1/routes", undefined, authorization)).json()) as {
        name: string;
      }[];
    try {
      const preview = await run("--check");
      expect(preview).toMatchObject({ code: 0, changed: 1 });
      expect(preview.output).toContain("create route shop");
      expect(await routes()).toEqual([]);
      expect(await run()).toMatchObject({ code: 0, changed: 1 });
      expect((await routes()).map(({ name }) => name)).toEqual(["shop"]);
      expect(await run()).toMatchObject({ code: 0, changed: 0 });
      const wrong = { sluice_configuration: { format: 1, routes: [{ name: "x", hosts: "y" }] } };
      const refused = await run("--extra-vars", JSON.stringify(wrong));
      expect(refused.code).toBe(2);
      expect(refused.output).toContain("routes[0].hosts: must be a list");
      expect(refused.output).not.toContain(token);
    } finally {
      await gateway.stop();
      rmSync(home, { recursive: true, force: true });
    }
  },
  120_000,
);
