// Repositories over HTTP, by the CGI program of git; knows no gateway.

/** The repositories of a folder; the program runs as RFC 3875 says. */
export function startGit(root: string) {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { headers } = request;
      const child = Bun.spawn(["git", "http-backend"], {
        env: {
          PATH: process.env["PATH"] ?? "",
          GIT_PROJECT_ROOT: root,
          GIT_HTTP_EXPORT_ALL: "1",
          PATH_INFO: pathname,
          QUERY_STRING: search.slice(1),
          REQUEST_METHOD: request.method,
          REMOTE_ADDR: headers.get("x-forwarded-for") ?? "",
          REMOTE_USER: "you",
          CONTENT_TYPE: headers.get("content-type") ?? "",
          HTTP_CONTENT_ENCODING: headers.get("content-encoding") ?? "",
          GIT_PROTOCOL: headers.get("git-protocol") ?? "",
        },
        stdin: request.body ?? "ignore",
        stdout: "pipe",
        stderr: "ignore",
      });
      const reader = child.stdout.getReader();
      let head = Buffer.alloc(0);
      while (head.indexOf("\r\n\r\n") < 0) {
        const { value, done } = await reader.read();
        if (done) return new Response(head, { status: 500 });
        head = Buffer.concat([head, value]);
      }
      const end = head.indexOf("\r\n\r\n");
      const fields = head.subarray(0, end).toString("latin1").split("\r\n");
      const pairs = fields.map((line) => line.split(/: */, 2) as [string, string]);
      const status = Number(pairs.find(([name]) => name === "Status")?.[1].slice(0, 3) ?? 200);
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(head.subarray(end + 4)),
        async pull(controller) {
          const { value, done } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        },
      });
      return new Response(body, { status, headers: pairs.filter(([name]) => name !== "Status") });
    },
  });
}
