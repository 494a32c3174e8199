// image-cache: gives images, fonts and versioned files a Cache-Control that their application forgot.
import { config, definePlugin, flag, httpScopes, integer, listOf, t } from "@sluice/plugin";

export default definePlugin({
  name: "image-cache",
  summary: "Sets Cache-Control for images and fonts",
  description: `Only successful responses to GET and HEAD without Cache-Control, without cookies, and to requests without Authorization
change. A path with a hash in its file name, such as \`app.3f9ac2d1.js\`, is immutable.`,
  group: "content",
  order: 3100,
  phases: ["response"],
  scopes: httpScopes,
  config: config({
    types: listOf(
      t.String({ pattern: "^[a-z]+/(?:\\*|[a-z0-9.+-]+)$", description: "Media type, or image/*" }),
      {
        default: ["image/*", "font/*"],
        description: "Media types that get the header",
        maxItems: 50,
      },
    ),
    max_age: integer(86_400, {
      minimum: 0,
      maximum: 31_536_000,
      description: "Seconds that browsers keep them",
    }),
    hashed_immutable: flag(true, "A year and `immutable` for file names with a hash"),
  }),
  example: { max_age: 604_800 },
  onError: "open",
  create(own) {
    const exact = new Set(own.types);
    const kinds = own.types.filter((type) => type.endsWith("/*")).map((type) => type.slice(0, -1));
    const isWanted = (type: string) =>
      exact.has(type) || kinds.some((kind) => type.startsWith(kind));
    const plain = `public, max-age=${own.max_age}`;
    const hashed = "public, max-age=31536000, immutable";
    return {
      response(context, response) {
        if (context.method !== "GET" && context.method !== "HEAD") return;
        if (response.status !== 200 || context.header("authorization") !== null) return;
        const { headers } = response;
        if (headers.has("cache-control") || headers.has("expires") || headers.has("set-cookie"))
          return;
        const isHashed =
          own.hashed_immutable && /[.-][0-9a-f]{8,64}\.[a-z0-9]{2,5}$/.test(context.path);
        const [type = ""] = (headers.get("content-type") ?? "").toLowerCase().split(";");
        if (isHashed || isWanted(type.trim()))
          headers.set("Cache-Control", isHashed ? hashed : plain);
      },
    };
  },
});
