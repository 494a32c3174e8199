// The recipes of docs/recipes.md against a gateway: their commands with the addresses of this machine, and what they give applications.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { outputOf } from "./child-output.ts";
import { type Gateway, runCommand, startGateway } from "./gateway.ts";
import { executable } from "./executable.ts";

const page = readFileSync(resolve(import.meta.dir, "../../docs/recipes.md"), "utf8");

/** The blocks of a language in a section of the page; null: before the first section. Throws when there is none. */
export function blocksOf(heading: string | null, language: string): string {
  const part =
    heading === null
      ? page.split("\n## ")[0]
      : page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0];
  const blocks = [...(part ?? "").matchAll(/```(\w+)\n(.*?)```/gs)]
    .filter(([, name]) => name === language)
    .map(([, , text]) => text);
  if (blocks.length === 0)
    throw new Error(`docs/recipes.md has no ${language} under ${heading ?? "its title"}`);
  return blocks.join("\n");
}

export interface RecipeGateway {
  readonly gateway: Gateway;
  /** Of an admin. */
  readonly token: string;
}

/** The executable with an admin, as the page assumes it. */
export async function startRecipeGateway(): Promise<RecipeGateway> {
  const gateway = await startGateway({ binary: executable, workers: 2 });
  await gateway.ok("POST", "/api/v1/users", {
    email: "you@example.com",
    name: "You",
    role: "admin",
    password: "a long password of yours",
  });
  const made = await runCommand(["token", "--data-dir", gateway.dataDir], { binary: executable });
  return { gateway, token: made.stdout.trim() };
}

/** Runs the commands of a recipe, with other texts in the place of its addresses; throws with their output. */
export async function followRecipe(
  heading: string,
  { gateway, token }: RecipeGateway,
  here: Readonly<Record<string, string>>,
): Promise<void> {
  let script = `set -e\n${blocksOf(null, "sh")}\n${blocksOf(heading, "sh")}`;
  script = script.replaceAll("http://127.0.0.1:9080", gateway.admin);
  for (const [text, other] of Object.entries(here)) {
    if (!script.includes(text)) throw new Error(`${heading} does not name ${text}`);
    script = script.replaceAll(text, other);
  }
  const left = /10\.0\.0\.[1-9]\d/.exec(script);
  if (left !== null) throw new Error(`${heading} has another address: ${left[0]}`);
  const child = Bun.spawn(["sh", "-c", script], {
    env: { PATH: process.env["PATH"] ?? "", SLUICE_TOKEN: token },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const { code, stdout, stderr } = await outputOf(child);
  if (code !== 0) throw new Error(`${heading}: ${stdout}\n${stderr}`);
}
