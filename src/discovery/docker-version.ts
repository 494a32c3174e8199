// Which version of Docker's API the gateway speaks with a daemon; sends no request.

/** Versions whose fields the gateway reads the same way. */
const OWN = { least: 40, most: 52 } as const;
/** Before the daemon has said what it knows: the only one that Docker 25 to 29 have in common. */
export const FALLBACK = "/v1.44";

type Chosen =
  | { readonly api: string }
  /** Completes a sentence that begins with the endpoint. */
  | { readonly api: null; readonly problem: string };

/** From the body of `GET /version`. */
export function chosenVersion(body: unknown): Chosen {
  const { ApiVersion, MinAPIVersion } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const most = minorOf(ApiVersion);
  // Not in answers of the first versions.
  const least = minorOf(MinAPIVersion) ?? 0;
  if (most === null) return { api: null, problem: "tells no version: this is not Docker's API" };
  if (most < OWN.least || least > OWN.most)
    return {
      api: null,
      problem: `speaks the versions 1.${least} to 1.${most} of Docker's API, and the gateway 1.${OWN.least} to 1.${OWN.most}: update ${most < OWN.least ? "Docker" : "the gateway"}`,
    };
  return { api: `/v1.${Math.min(most, OWN.most)}` };
}

/** The version that a refusal asks for; null: another reason, or one that the gateway does not speak. */
export function complainedVersion(said: string): string | null {
  const [, bound] = /\b(?:minimum|maximum) supported API version is (\d+\.\d+)/i.exec(said) ?? [];
  const minor = minorOf(bound);
  return minor === null || minor < OWN.least || minor > OWN.most ? null : `/v1.${minor}`;
}

/** 44 of `1.44`; null for anything else. */
function minorOf(version: unknown): number | null {
  const [, minor] = /^1\.(\d{1,4})$/.exec(typeof version === "string" ? version : "") ?? [];
  return minor === undefined ? null : Number(minor);
}
