// Which labels and variables of containers came with their images, and so from who published them; knows no site.
import type { Discovery } from "../model/discovery.ts";
import { dialectOf } from "./containers.ts";
import type { ImageFacts, ListedContainer } from "./docker-client.ts";

/** Requests at the same time. */
const AT_ONCE = 16;

type Environments = ReadonlyMap<string, Readonly<Record<string, string>>>;
type Rules = Pick<Discovery["docker"], "labels" | "image_labels">;

export interface OfContainers {
  readonly containers: readonly ListedContainer[];
  readonly environments: Environments;
}

/** Reads each image once. */
export class Images {
  /** By id; null: the API does not say. */
  readonly #known = new Map<string, ImageFacts | null>();

  /** Why labels of images count as well, a sentence; null: they do not. */
  problem: string | null = null;

  /** Without what came with the images, unless the settings let it count. */
  async without(
    found: OfContainers,
    rules: Rules,
    read: (id: string) => Promise<ImageFacts | null>,
  ): Promise<OfContainers> {
    this.problem = null;
    if (rules.image_labels) return found;
    const here = new Set(found.containers.map(({ ImageID: id }) => id));
    for (const id of this.#known.keys()) if (!here.has(id)) this.#known.delete(id);
    const isNeeded = (one: ListedContainer) =>
      dialectOf(one, found.environments.get(one.Id), rules.labels) !== null;
    const needed = found.containers.filter(isNeeded).map(({ ImageID: id = "" }) => id);
    const unknown = [...new Set(needed)].filter((id) => id !== "" && !this.#known.has(id));
    for (let from = 0; from < unknown.length; from += AT_ONCE)
      await Promise.all(
        unknown.slice(from, from + AT_ONCE).map(async (id) => this.#known.set(id, await read(id))),
      );
    if (needed.some((id) => (this.#known.get(id) ?? null) === null))
      this.problem =
        "the API does not say which labels came with images, so those of images count: let the proxy in front of the socket allow GET /images/ID/json";
    return {
      containers: found.containers.map((container) => {
        const image = this.#known.get(container.ImageID ?? "") ?? null;
        return image === null ? container : { ...container, Labels: ownLabels(container, image) };
      }),
      environments: new Map(
        found.containers.flatMap(({ Id, ImageID }) => {
          const own = found.environments.get(Id);
          const { environment = {} } = this.#known.get(ImageID ?? "") ?? {};
          return own === undefined ? [] : [[Id, unlike(own, environment)] as const];
        }),
      ),
    };
  }
}

/** Compose labels the images that it builds, too; only a container that it has made has these. */
const OF_COMPOSE = ["com.docker.compose.config-hash", "com.docker.compose.container-number"];

function ownLabels(
  { Labels }: ListedContainer,
  { labels }: ImageFacts,
): Readonly<Record<string, string>> {
  const own = unlike(Labels ?? {}, labels);
  if (!OF_COMPOSE.some((key) => Object.hasOwn(own, key))) return own;
  const composed = Object.entries(Labels ?? {}).filter(([key]) =>
    /^com\.docker\.compose\.(?:project|service)$/.test(key),
  );
  return { ...own, ...Object.fromEntries(composed) };
}

const unlike = (all: Readonly<Record<string, string>>, others: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(all).filter(
      ([key, value]) => !Object.hasOwn(others, key) || others[key] !== value,
    ),
  );
