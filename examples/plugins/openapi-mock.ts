// openapi-mock: responds with the examples of an OpenAPI description, for front ends whose back end is not there yet.
import { config, definePlugin, flag, httpScopes, reply, t } from "@sluice/plugin";

interface Media {
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>;
}
interface Operation {
  readonly responses?: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, Media>> }>
  >;
}
interface Description {
  readonly paths?: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** What `content` shows as an example; undefined when it shows none. */
const exampleOf = (media: Media | undefined): unknown =>
  media?.example ?? Object.values(media?.examples ?? {})[0]?.value;

function read(text: string): Description | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : null;
  } catch {
    return null;
  }
}

/** `/pets/{id}` as an expression; templates match one segment. */
const patternOf = (path: string) =>
  new RegExp(
    `^${path
      .split(/\{[^{}/]*\}/)
      .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
      .join("[^/]+")}$`,
  );

export default definePlugin({
  name: "openapi-mock",
  summary: "Responds with the examples of an OpenAPI description",
  description: `The first successful response of the operation is used, and its first example. A request may choose another status with
\`Prefer: code=404\`. Operations without an example go to the target, or get 501 with \`strict\`.`,
  group: "content",
  order: 2600,
  phases: ["request"],
  scopes: httpScopes,
  config: config({
    description: t.String({ minLength: 2, maxLength: 1_048_576, description: "OpenAPI 3 as JSON" }),
    base_path: t.String({
      default: "",
      maxLength: 256,
      pattern: "^(?:/[^?#]*[^/?#])?$",
      description: "Beginning of the path before the paths of the description",
    }),
    strict: flag(false, "Respond 501 for operations without an example"),
  }),
  example: {
    description:
      '{"paths":{"/pets/{id}":{"get":{"responses":{"200":{"content":{"application/json":{"example":{"id":1}}}}}}}}}',
  },
  check: ({ description }) =>
    read(description)?.paths === undefined
      ? [{ path: "description", message: "must be OpenAPI 3 as JSON, with paths" }]
      : [],
  onError: "open",
  create(own) {
    const operations = Object.entries(read(own.description)?.paths ?? {})
      // RFC-like precedence of OpenAPI: concrete paths before templated ones.
      .sort(([one], [other]) => one.split("{").length - other.split("{").length)
      .map(([path, byMethod]) => ({ pattern: patternOf(path), byMethod }));
    const none = () =>
      own.strict
        ? reply(501, "mock.none", { body: "the description has no example\n" })
        : undefined;
    return {
      request(context) {
        if (!context.path.startsWith(own.base_path)) return none();
        const path = context.path.slice(own.base_path.length) || "/";
        const method = context.method.toLowerCase();
        const found = operations.find(
          ({ pattern, byMethod }) => pattern.test(path) && Object.hasOwn(byMethod, method),
        );
        const responses = Object.entries(found?.byMethod[method]?.responses ?? {});
        const wanted = /(?:^|[\s,])code=(\d{3})/.exec(context.header("prefer") ?? "")?.[1];
        const chosen = responses.find(([status]) =>
          wanted === undefined ? /^2\d\d$/.test(status) : status === wanted,
        );
        if (chosen === undefined) return none();
        const [status, { content = {} }] = chosen;
        const [type, media] = Object.entries(content)[0] ?? [];
        const example = exampleOf(media);
        if (example === undefined && type !== undefined) return none();
        return reply(Number(status), "mock.example", {
          headers: type === undefined ? {} : { "Content-Type": type },
          body:
            example === undefined
              ? null
              : typeof example === "string"
                ? example
                : JSON.stringify(example),
        });
      },
    };
  },
});
