// Writes the licences of all packages as one text; knows nothing of how packages were found.
import type { Package } from "./packages.ts";

const LINE = "=".repeat(80);

export function licenceTexts(packages: readonly Package[], bunVersion: string): string {
  const sections = packages.map((each) => {
    const title = `${each.name} ${each.version} (${each.license})`;
    const from = each.repository === null ? "" : `\n${each.repository}`;
    const texts = each.texts.map(([, text]) => text.replaceAll("\r\n", "\n").trim());
    const body =
      texts.length > 0
        ? texts.join("\n\n")
        : "The package has no file with the text of its licence; its name is the one above.";
    return `${LINE}\n${title}${from}\n${LINE}\n\n${body}\n`;
  });
  return [introduction(bunVersion), ...sections].join("\n");
}

const introduction = (
  bunVersion: string,
) => `Sluice is under the Apache License 2.0. The executable also holds what is listed here.

${LINE}
Bun ${bunVersion} (MIT)
https://github.com/oven-sh/bun
${LINE}

The executable is Bun, with Sluice inside. Bun is under the MIT licence. It is linked statically with JavaScriptCore and
other parts of WebKit (LGPL 2), with TinyCC (LGPL 2.1), and with further libraries under permissive licences, among them
BoringSSL, uSockets, lsquic, c-ares, mimalloc, zstd, brotli, zlib-ng, simdutf, libarchive, lol-html and ICU. The list with the
text or place of each licence, and how Bun is built anew with a changed WebKit, is in LICENSE.md of its source:
https://github.com/oven-sh/bun/blob/bun-v${bunVersion}/LICENSE.md
An executable with such a Bun is made from the source of Sluice by \`make release\`, after the file of the target below
.bun/targets/${bunVersion}/ was replaced by it.
`;
