// The form of a service, with its live targets and the routes that use it.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Document } from "../../api/merge-patch.ts";
import type { Read } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm } from "../../parts/object-form.tsx";
import { partsOfUrl } from "../../parts/lenient-url.ts";
import { LiveTargets } from "./live-targets.tsx";
import { UsedBy } from "./used-by.tsx";

const schema = formSchemaOf("services");
const initial = { targets: [{}] };

export const ServiceForm = (start: FormStart<Read<"services">>) => (
  <ObjectForm
    resource="services"
    schema={schema}
    start={start}
    initial={initial}
    text="An application and the servers it runs on."
    onChange={(name, value, form) => {
      const pasted = name === "targets" ? serversOf(value as readonly Document[]) : null;
      if (pasted !== null) form.setFieldValue("targets", pasted);
    }}
    before={(service) => (
      <>
        <LiveTargets service={service} />
        <UsedBy service={service} />
      </>
    )}
  />
);

/** The targets with host and port of pasted URLs; null: there is no URL among them. */
function serversOf(targets: readonly Document[]): readonly Document[] | null {
  const isUrl = ({ host }: Document) => /^https?:\/\//.test(String(host));
  if (!targets.some(isUrl)) return null;
  return targets.map((target) => {
    const parts = isUrl(target) ? partsOfUrl(String(target["host"])) : null;
    if (parts === null) return target;
    return { ...target, host: parts.host, port: parts.port ?? target["port"] ?? null };
  });
}
