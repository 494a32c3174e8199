// The documentation as a site: README.md and docs/ by VitePress; `make docs-site` writes it to dist/docs-site.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { defineConfig } from "vitepress";

const root = resolve(import.meta.dirname, "../../..");

/** Each page has its place: what to do first, how to reach an aim, what there is, and why it is so. */
const groups = {
  Tutorials: ["home-lab", "web-ui", "edge-vps"],
  "How-to guides": [
    [
      "install",
      "upgrade",
      "backup",
      "migrating",
      "gitops",
      "automation",
      "applications",
      "acme",
      "local-ca",
      "dns-providers",
      "discovery",
    ],
    [
      "recipes",
      "sso",
      "users",
      "secrets",
      "alerts",
      "geoip",
      "blocking",
      "grpc",
      "fleet",
      "shared-counters",
      "writing-a-plugin",
    ],
  ].flat(),
  Reference: [
    [
      "configuration",
      "listeners",
      "upstreams",
      "health",
      "retries",
      "streams",
      "consumers",
      "sign-in",
      "events",
    ],
    ["metrics", "requests", "stats", "fleet-api", "gateway-api", "limits-of-bun", "benchmarks"],
  ].flat(),
  Explanation: [
    [
      "concepts",
      "architecture",
      "request-life",
      "security",
      "operations",
      "comparison",
      "releasing",
      "web-ui-development",
    ],
  ].flat(),
} satisfies Record<string, readonly string[]>;

const titleOf = (page: string): string =>
  /^# (.*)$/m.exec(readFileSync(resolve(root, `docs/${page}.md`), "utf8"))?.[1] ?? page;
const pagesOf = (folder: string): string[] =>
  readdirSync(resolve(root, "docs", folder))
    .filter((name) => name.endsWith(".md") && name !== "README.md")
    .map((name) => `${folder}${name.slice(0, -3)}`)
    .sort();
const items = (pages: readonly string[]) =>
  pages.map((page) => ({ text: titleOf(page), link: `/${page.replace(/README$/, "")}` }));

const placed = new Set<string>(Object.values(groups).flat());
const missing = pagesOf("").filter((page) => !placed.has(page));
if (missing.length > 0) throw new Error(`no group of the sidebar has ${missing.join(", ")}`);

/** A link between files of the repository as one between pages of the site, whose folders differ. */
function linkOf(
  href: string,
  { realPath, path }: { readonly realPath?: string; readonly path: string },
): string {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return href;
  const [file = "", ...anchor] = href.split(/(?=#)/);
  const target = relative(root, resolve(dirname(realPath ?? path), file))
    .replace(/^docs\//, "")
    .replace(/(?:^|(?<=\/))README\.md$|(?<=^decisions)$/, "/")
    .replace(/^SECURITY\.md$/, "reporting-a-vulnerability")
    .replace(/\.md$/, "");
  return `/${target.replace(/^\/|\/(?=\/)/, "")}${anchor.join("")}`;
}

export default defineConfig({
  title: "Sluice",
  description: "A self-hosted HTTP and TCP gateway: one executable, configured at run time",
  srcDir: root,
  outDir: resolve(root, "dist/docs-site"),
  cacheDir: resolve(root, "dist/docs-site-cache"),
  srcExclude: ["node_modules/**", "dist/**", "src/**", "tests/**", "scripts/**", "examples/**"],
  rewrites: {
    "README.md": "index.md",
    // File names that differ only in case are one name to the bundler.
    "SECURITY.md": "reporting-a-vulnerability.md",
    "docs/:folder/README.md": ":folder/index.md",
    "docs/:page(.*)": ":page",
  },
  // Links to sources and examples are for readers of the repository.
  ignoreDeadLinks: [/(?:^|\/)(?:src|tests|examples|scripts|LICENSE)/],
  markdown: {
    // `<name>` and `{{name}}` in texts are ours, and no elements and templates of Vue.
    html: false,
    config: ({ core, renderer }) => {
      core.ruler.push("repository-links", ({ tokens, env }) => {
        for (const token of tokens.flatMap(({ children }) => children ?? []))
          if (token.type === "link_open")
            token.attrSet("href", linkOf(token.attrGet("href") ?? "", env));
      });
      for (const rule of ["text", "code_inline"] as const) {
        const render = renderer.rules[rule];
        renderer.rules[rule] = (...parts) =>
          (render?.(...parts) ?? "").replaceAll("{{", "&#123;&#123;");
      }
    },
  },
  themeConfig: {
    // The index is part of the site: a search asks no server.
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: [
      ...Object.entries(groups).map(([text, pages]) => ({
        text,
        items:
          text === "Tutorials"
            ? [{ text: "Quick start", link: "/" }, ...items(pages)]
            : items(pages),
      })),
      {
        text: "Plugins",
        collapsed: true,
        items: items(["plugins/README", ...pagesOf("plugins/")]),
      },
      { text: "Architecture decisions", collapsed: true, items: items(pagesOf("decisions/")) },
    ],
  },
});
