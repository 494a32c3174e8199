// The representation of an application: its fields, its objects, and their drift; changes nothing.
import {
  type Application,
  type ApplicationInput,
  type PartCollection,
  referenceOf,
} from "../model/application.ts";
import type { Certificate } from "../model/certificate.ts";
import { type Identity, markOf } from "../model/fields.ts";
import type { GatewayConfig, ResourceOf } from "../model/gateway-config.ts";
import type { Plugin } from "../model/plugin.ts";
import type { Route } from "../model/route.ts";
import type { Service } from "../model/service.ts";
import type { CertificateView } from "../acme/certificates.ts";
import { withoutSecrets } from "../control/plugin-config-writer.ts";
import { type TargetView, targetLookup } from "../control/representation.ts";
import type { ObjectDifference } from "../control/differences.ts";
import { type CompleteConfig, type Drift, driftOf } from "./drift.ts";
import { httpsWarnings } from "./https-plan.ts";
import { loginWarnings, userLookup } from "./login-warnings.ts";
import { objectOf } from "./parts.ts";

export type ApplicationView = Omit<ApplicationInput, "targets"> &
  Identity & {
    /** Null: deleted. */
    readonly service: Service | null;
    readonly targets: readonly TargetView[];
    readonly routes: readonly Route[];
    readonly plugins: readonly Plugin[];
    /** The certificate in the configuration. */
    readonly certificate: CertificateView | null;
    /** Self-signed or of the local CA: served until the other one is issued, and for private names. */
    readonly interim_certificate: CertificateView | null;
    readonly drift: readonly Drift[];
    readonly warnings: readonly string[];
    /** Of a trial: what it would change. */
    readonly changes?: readonly ObjectDifference[];
  };

export interface Viewers {
  readonly target: (target: ResourceOf["targets"]) => TargetView;
  readonly certificate: (certificate: Certificate) => CertificateView;
  readonly completeConfig: CompleteConfig;
}

/** What clients send. */
export function inputOf(application: Application): ApplicationInput {
  const {
    id: _,
    created_at: __,
    updated_at: ___,
    managed_by: ______,
    parts: ____,
    https_state: _____,
    ...input
  } = application;
  return input;
}

export function createApplicationViewer(config: GatewayConfig, viewers: Viewers) {
  const targetsOf = targetLookup(config);
  const hasUsers = userLookup(config);
  return (application: Application): ApplicationView => {
    const { id, created_at, updated_at } = application;
    const service = serviceOf(application, config);
    const { certificate, interim } = certificatesOf(application, config);
    const shown = (one: Certificate | undefined) =>
      one === undefined ? null : viewers.certificate(one);
    return {
      id,
      ...inputOf(application),
      created_at,
      updated_at,
      ...markOf(application),
      service: service ?? null,
      targets: service === undefined ? [] : targetsOf(service.id).map(viewers.target),
      routes: partsIn(application, config, "routes"),
      plugins: partsIn(application, config, "plugins").map((plugin) => ({
        ...plugin,
        config: withoutSecrets(plugin.config) as Plugin["config"],
      })),
      certificate: shown(certificate),
      interim_certificate: shown(interim),
      drift: driftOf(application, config, viewers.completeConfig),
      warnings: [...httpsWarnings(application, config), ...loginWarnings(application, hasUsers)],
    };
  };
}

/** Everything that is stored about it. */
export function contentOf(config: GatewayConfig) {
  const targetsOf = targetLookup(config);
  return (application: Application): unknown => {
    const service = serviceOf(application, config);
    return [
      application,
      service,
      service === undefined ? [] : targetsOf(service.id),
      ...(["routes", "plugins"] as const).map((name) => partsIn(application, config, name)),
      ...Object.values(certificatesOf(application, config)),
    ];
  };
}

const serviceOf = (application: Application, config: GatewayConfig) =>
  objectOf(config, application, { role: "service", collection: "services" });

function certificatesOf(application: Application, config: GatewayConfig) {
  const made = (role: string) =>
    objectOf(config, application, { role, collection: "certificates" });
  const [ordered, local, own] = [made("certificate"), made("local"), made("self_signed")];
  const named = config.certificates.get(application.https.certificate_id ?? "");
  const certificate = named ?? ordered ?? own ?? local;
  const others = [own, local].filter((one) => one !== undefined && one !== certificate);
  return { certificate, interim: others[0] };
}

function partsIn<K extends PartCollection>(
  { parts }: Application,
  config: GatewayConfig,
  collection: K,
): ResourceOf[K][] {
  const objects = config[collection] as ReadonlyMap<string, ResourceOf[K]>;
  return parts.flatMap((part) => {
    const reference = referenceOf(part);
    const found = reference?.collection === collection ? objects.get(reference.id) : undefined;
    return found === undefined ? [] : [found];
  });
}
