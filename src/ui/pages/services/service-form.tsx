// The form of a service, with its live targets and the routes that use it.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Read } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm } from "../../parts/object-form.tsx";
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
    before={(service) => (
      <>
        <LiveTargets service={service} />
        <UsedBy service={service} />
      </>
    )}
  />
);
