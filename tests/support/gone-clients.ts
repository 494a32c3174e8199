// Clients of another process that are gone before this thread accepts them; knows no protocol.

/** Blocks the thread, and with it every server in it, until as many clients have connected, sent this text and reset. */
export function leaveUnaccepted(port: number, count: number, text = ""): void {
  const program = `for (let at = 0; at < ${count}; at++)
    await Bun.connect({ hostname: "127.0.0.1", port: ${port}, socket: {
      data() {},
      open(socket) { socket.write(${JSON.stringify(text)}); socket.terminate(); },
    } });`;
  const { success, stderr } = Bun.spawnSync([process.execPath, "-e", program]);
  if (!success) throw new Error(String(stderr));
}
