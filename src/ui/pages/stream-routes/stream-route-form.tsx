// The form of a stream route, with its live connections.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import { useState } from "react";
import type { Read } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm } from "../../parts/object-form.tsx";
import { NewStream } from "./new-stream.tsx";
import { LiveConnections } from "./live-connections.tsx";

const schema = formSchemaOf("stream-routes");

export function StreamRouteForm(start: FormStart<Read<"stream-routes">>) {
  const isBlank = start.source === null && Object.keys(start.template).length === 0;
  const [isWhole, setWhole] = useState(() => location.search !== "");
  if (isBlank && !isWhole) return <NewStream onAllSettings={() => setWhole(true)} />;
  return (
    <ObjectForm
      resource="stream-routes"
      schema={schema}
      start={start}
      text="A TCP or UDP port that forwards to a service."
      before={(route) => <LiveConnections route={route} />}
    />
  );
}
