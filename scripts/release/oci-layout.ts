// Writes images as an OCI image layout (image-spec 1.1); knows nothing of what is in them.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";

/** A blob as other blobs refer to it. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: object;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface Layer {
  readonly descriptor: Descriptor;
  /** Digest of the archive before compression. */
  readonly diffId: string;
  /** One line of `docker history`. */
  readonly comment: string;
}

export interface Image {
  /** In Docker's words: amd64, arm64. */
  readonly architecture: string;
  /** ISO 8601. */
  readonly created: string;
  /** Member `config` of the image configuration. */
  readonly config: object;
  readonly labels: Readonly<Record<string, string>>;
  readonly layers: readonly Layer[];
}

/** What `docker load` calls it. */
const NAME = "sluice:latest";
const OWN = process.arch === "arm64" ? "arm64" : "amd64";

const type = (name: string) => `application/vnd.oci.image.${name}`;
/** 19 takes 25 times as long and saves 9 %. */
const LEVEL = { params: { [constants.ZSTD_c_compressionLevel]: 9 } };

export class OciLayout {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async create(folder: string): Promise<OciLayout> {
    await mkdir(join(folder, "blobs/sha256"), { recursive: true });
    await Bun.write(join(folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
    return new OciLayout(folder);
  }

  async addLayer(tar: Uint8Array, comment: string): Promise<Layer> {
    const descriptor = await this.#add(type("layer.v1.tar+zstd"), zstdCompressSync(tar, LEVEL));
    return { descriptor, diffId: digestOf(tar), comment };
  }

  async addImage(image: Image): Promise<Descriptor> {
    const { architecture, created, layers, labels } = image;
    const platform = { architecture, os: "linux" };
    const config = await this.#addJson(type("config.v1+json"), {
      created,
      ...platform,
      config: { ...image.config, Labels: labels },
      rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(({ comment }) => ({ created, created_by: comment })),
    });
    const manifest = await this.#addJson(type("manifest.v1+json"), {
      schemaVersion: 2,
      mediaType: type("manifest.v1+json"),
      config,
      layers: layers.map(({ descriptor }) => descriptor),
      annotations: labels,
    });
    if (architecture === OWN) await this.#writeArchiveManifest(config, layers);
    return { ...manifest, platform };
  }

  /** Makes the directory an archive of `docker save` as well, with the image of this machine. */
  async #writeArchiveManifest(config: Descriptor, layers: readonly Layer[]): Promise<void> {
    const Layers = layers.map(({ descriptor }) => placeOf(descriptor));
    const image = { Config: placeOf(config), RepoTags: [NAME], Layers };
    await Bun.write(join(this.#folder, "manifest.json"), JSON.stringify([image]));
  }

  /** Joins images for several architectures under one tag. */
  async finish(
    images: readonly Descriptor[],
    tag: string,
    annotations: Readonly<Record<string, string>>,
  ): Promise<string> {
    const mediaType = type("index.v1+json");
    const all = { schemaVersion: 2, mediaType, manifests: images, annotations };
    const index = await this.#addJson(mediaType, all);
    const names = {
      "org.opencontainers.image.ref.name": tag,
      "io.containerd.image.name": `docker.io/library/${NAME}`,
    };
    const tagged = { ...index, annotations: names };
    const top = { schemaVersion: 2, mediaType, manifests: [tagged] };
    await Bun.write(join(this.#folder, "index.json"), JSON.stringify(top));
    return index.digest;
  }

  #addJson(mediaType: string, value: object): Promise<Descriptor> {
    return this.#add(mediaType, new TextEncoder().encode(JSON.stringify(value)));
  }

  async #add(mediaType: string, bytes: Uint8Array): Promise<Descriptor> {
    const digest = digestOf(bytes);
    await Bun.write(join(this.#folder, placeOf({ digest })), bytes);
    return { mediaType, digest, size: bytes.length };
  }
}

const placeOf = ({ digest }: Pick<Descriptor, "digest">) => `blobs/${digest.replace(":", "/")}`;

const digestOf = (bytes: Uint8Array) =>
  `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
