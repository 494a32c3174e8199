// The form of a stream route, with its live connections.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Read } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm } from "../../parts/object-form.tsx";
import { LiveConnections } from "./live-connections.tsx";

const schema = formSchemaOf("stream-routes");

export const StreamRouteForm = (start: FormStart<Read<"stream-routes">>) => (
  <ObjectForm
    resource="stream-routes"
    schema={schema}
    start={start}
    text="A TCP or UDP port that forwards to a service."
    before={(route) => <LiveConnections route={route} />}
  />
);
