// Writes the SBOM as CycloneDX 1.6 JSON; knows nothing of how packages were found.
import type { Package } from "./packages.ts";

export interface Release {
  readonly version: string;
  /** Full git commit; null: unknown. */
  readonly commit: string | null;
  /** Time of the commit, ISO 8601; the time of the build would not be reproducible. */
  readonly committedAt: string;
  readonly bunVersion: string;
}

/** A built file, with its SHA-256. */
export interface BuiltFile {
  readonly name: string;
  readonly sha256: string;
}

export function billOfMaterials(
  release: Release,
  packages: readonly Package[],
  files: readonly BuiltFile[],
): string {
  const reference = `sluice@${release.version}`;
  const bun = `bun@${release.bunVersion}`;
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: release.committedAt,
      component: {
        "bom-ref": reference,
        type: "application",
        name: "sluice",
        version: release.version,
        licenses: [{ license: { id: "Apache-2.0" } }],
        properties: [{ name: "sluice:commit", value: release.commit ?? "unknown" }],
        components: files.map(({ name, sha256 }) => ({
          "bom-ref": `file:${name}`,
          type: "file",
          name,
          hashes: [{ alg: "SHA-256", content: sha256 }],
        })),
      },
    },
    components: [
      {
        "bom-ref": bun,
        type: "platform",
        name: "bun",
        version: release.bunVersion,
        purl: `pkg:npm/bun@${release.bunVersion}`,
        licenses: [{ license: { id: "MIT" } }],
        description:
          "The runtime inside of the executable, with the libraries that are linked to it",
      },
      ...packages.map(toComponent),
    ],
    dependencies: [
      { ref: reference, dependsOn: [bun, ...packages.map(purlOf)] },
      ...[bun, ...packages.map(purlOf)].map((ref) => ({ ref })),
    ],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** https://github.com/package-url/purl-spec: the @ of a scope is written %40. */
const purlOf = ({ name, version }: Package) => `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;

function toComponent(each: Package) {
  const slash = each.name.indexOf("/");
  return {
    "bom-ref": purlOf(each),
    type: "library",
    ...(slash > 0 ? { group: each.name.slice(0, slash) } : {}),
    name: each.name.slice(slash + 1),
    version: each.version,
    purl: purlOf(each),
    scope: each.presence === "bundled" ? "required" : "optional",
    ...(each.license === "NOASSERTION" ? {} : { licenses: [licenceOf(each.license)] }),
  };
}

/** A single known name is an id; other texts are an expression. */
const licenceOf = (text: string) =>
  /^[\w.+-]+$/.test(text)
    ? { license: { id: text } }
    : { expression: text.replace(/^\((.*)\)$/, "$1") };
