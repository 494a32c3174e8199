// All that a child process prints.

/** Waits for the end of a process whose output is piped. */
export async function outputOf(
  child: Bun.Subprocess<Bun.Spawn.Writable, "pipe", "pipe">,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}
