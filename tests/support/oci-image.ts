// An image in a folder, as the OCI image layout says; knows no registry.
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** An OCI layout with two layers that no compression makes smaller; returns the digest of its manifest. */
export function writeImage(folder: string): string {
  const blobs = join(folder, "blobs/sha256");
  mkdirSync(blobs, { recursive: true });
  const add = (content: string | Uint8Array, mediaType: string) => {
    const hex = createHash("sha256").update(content).digest("hex");
    writeFileSync(join(blobs, hex), content);
    return { mediaType, digest: `sha256:${hex}`, size: Buffer.byteLength(content) };
  };
  const type = (name: string) => `application/vnd.oci.image.${name}`;
  const layers = [3_000_000, 9_000_000].map((size) => add(randomBytes(size), type("layer.v1.tar")));
  const rootfs = { type: "layers", diff_ids: layers.map(({ digest }) => digest) };
  const config = { architecture: "amd64", os: "linux", config: {}, rootfs };
  const manifest = {
    schemaVersion: 2,
    mediaType: type("manifest.v1+json"),
    config: add(JSON.stringify(config), type("config.v1+json")),
    layers,
  };
  const described = add(JSON.stringify(manifest), manifest.mediaType);
  const annotations = { "org.opencontainers.image.ref.name": "1.0" };
  const index = { schemaVersion: 2, manifests: [{ ...described, annotations }] };
  writeFileSync(join(folder, "index.json"), JSON.stringify(index));
  writeFileSync(join(folder, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  return described.digest;
}
