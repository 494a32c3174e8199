// insert-html: puts a snippet at the end of each page's head or body, with Bun's HTMLRewriter.
import {
  type BodyTransform,
  config,
  definePlugin,
  httpScopes,
  listOf,
  oneOf,
  t,
} from "@sluice/plugin";

/** HTMLRewriter takes a whole stream: the transform writes into one and reads what comes out. */
class Insertion implements BodyTransform {
  readonly #input = new TransformStream<Uint8Array, Uint8Array>();
  readonly #writer = this.#input.writable.getWriter();
  readonly #output: Promise<ArrayBuffer>;
  #length = 0;
  readonly isSlow = true;

  constructor(rewriter: HTMLRewriter) {
    this.#output = rewriter.transform(new Response(this.#input.readable)).arrayBuffer();
  }

  push(chunk: Uint8Array): null {
    this.#length += chunk.byteLength;
    // The gateway reuses its bytes.
    void this.#writer.write(chunk.slice());
    return null;
  }

  async end(): Promise<Uint8Array> {
    await this.#writer.close();
    return new Uint8Array(await this.#output);
  }

  abort(): void {
    this.#writer.abort().catch(() => {});
    this.#output.catch(() => {});
  }
}

export default definePlugin({
  name: "insert-html",
  summary: "Inserts a snippet into HTML pages",
  description: `A banner, a script of statistics, a style: without a change of the application. Compressed responses and those with another
content type stay as they are; so do pages longer than \`max_body\`, or of unknown length.`,
  group: "content",
  order: 4100,
  phases: ["request", "response", "body"],
  scopes: httpScopes,
  needsAdmin: true,
  config: config({
    html: t.String({ minLength: 1, maxLength: 16_384, description: "The snippet, as HTML" }),
    place: oneOf(["head", "body"], { default: "body", description: "At the end of this element" }),
    skip_paths: listOf(
      t.String({ minLength: 1, maxLength: 256, description: "Beginning of a path" }),
      {
        description: "Paths whose pages stay as they are",
        maxItems: 100,
      },
    ),
    max_body: t.Integer({
      default: 4_194_304,
      minimum: 1,
      maximum: 67_108_864,
      description: "Longest page in bytes",
    }),
  }),
  example: { html: "<p>This is a test system.</p>" },
  onError: "open",
  create(own) {
    const isSkipped = (path: string) => own.skip_paths.some((prefix) => path.startsWith(prefix));
    return {
      request(context) {
        // A page must arrive uncompressed to be changed; `compress` compresses it afterwards.
        if (!isSkipped(context.path)) context.upstream.setHeader("Accept-Encoding", "identity");
        return undefined;
      },
      response(context, response) {
        if (
          !response.hasBody ||
          context.isGrpc ||
          isSkipped(context.path) ||
          response.status === 206
        )
          return;
        const { headers, bodyLength } = response;
        if (!/^text\/html\b/i.test(headers.get("content-type") ?? "")) return;
        if ((headers.get("content-encoding") ?? "identity") !== "identity") return;
        if (bodyLength === null || bodyLength > own.max_body) return;
        const rewriter = new HTMLRewriter().on(own.place, {
          element(element) {
            element.append(own.html, { html: true });
          },
        });
        for (const name of ["content-length", "etag", "accept-ranges", "content-md5"])
          headers.delete(name);
        response.transformBody(new Insertion(rewriter));
      },
    };
  },
});
