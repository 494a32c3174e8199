// A process returns the pages of its own code to the system, and continues.
import { expect } from "bun:test";
import { join } from "node:path";
import { needs } from "../../support/needs.ts";

const room = join(import.meta.dir, "../../../src/supervisor/program-pages.ts");

/** Prints how much of its code is resident before and after, and computes something with it. */
const program = `
  import { readFileSync } from "node:fs";
  import { giveBackProgram } from ${JSON.stringify(room)};
  const residentCode = () => {
    const entries = readFileSync("/proc/self/smaps", "utf8").split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
    const own = entries.filter((entry) => / r-xp .*\\/bun\\b/.test(entry.slice(0, entry.indexOf("\\n"))));
    return own.reduce((sum, entry) => sum + Number(/^Rss: +(\\d+) kB$/m.exec(entry)[1]), 0);
  };
  const before = residentCode();
  const bytes = giveBackProgram();
  const after = residentCode();
  const sum = new Bun.SHA256().update(JSON.stringify([1, { two: 3 }])).digest("hex");
  console.log(JSON.stringify({ before, bytes, after, sum }));
`;

needs("linux").test("the code that has run is not resident any more", async () => {
  const child = Bun.spawn([process.execPath, "-e", program], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const report = JSON.parse(await new Response(child.stdout).text());
  expect(await child.exited).toBe(0);
  expect(report.bytes).toBeGreaterThan(report.before * 1024);
  // Kilobytes; what runs in between is there again.
  expect(report.before).toBeGreaterThan(8_000);
  expect(report.after).toBeLessThan(report.before / 2);
  expect(report.sum).toBe(Bun.SHA256.hash('[1,{"two":3}]', "hex"));
});
