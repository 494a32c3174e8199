// Renders the Helm chart by Go's templates with Helm's functions: Debian has no Helm.
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathOf } from "../needs.ts";

const checkout = resolve(import.meta.dir, "../../..");
export const chart = join(checkout, "scripts/packaging/helm");

export interface Container {
  readonly image: string;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly readinessProbe: { readonly exec: { readonly command: readonly string[] } };
}

export interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  // biome-ignore lint/suspicious/noExplicitAny: objects of Kubernetes, of which tests name the fields that they expect
  readonly spec: any;
}

/** Builds the renderer in a scratch directory. */
export function createChartRenderer(scratch: string) {
  const renderer = join(scratch, "render");
  const source = join(checkout, "tests/support/helm/render.go");
  const { exitCode, stderr } = Bun.spawnSync(
    [pathOf("go") ?? "", "build", "-o", renderer, source],
    {
      env: {
        PATH: process.env["PATH"],
        HOME: scratch,
        GO111MODULE: "off",
        GOPATH: "/usr/share/gocode",
        GOCACHE: join(tmpdir(), "sluice-go-cache"),
      },
    },
  );
  if (exitCode !== 0) throw new Error(stderr.toString());
  return (values: object, release = "web"): readonly Rendered[] => {
    const file = join(scratch, "values.yaml");
    writeFileSync(file, JSON.stringify(values));
    const rendered = Bun.spawnSync([renderer, chart, release, file]);
    if (rendered.exitCode !== 0) throw new Error(rendered.stderr.toString());
    const all = Bun.YAML.parse(rendered.stdout.toString()) as (Rendered | null)[];
    return all.filter((each) => each !== null);
  };
}
