// The form of a listener, with warnings about connections that a change closes.
import { Alert } from "@mantine/core";
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Read } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm, type ObjectFormState } from "../../parts/object-form.tsx";
import { isOwnListener, mayDisconnect } from "./own-listener.ts";

const schema = formSchemaOf("listeners");

export function ListenerForm(start: FormStart<Read<"listeners">>) {
  const listener = start.source?.value ?? null;
  return (
    <ObjectForm
      resource="listeners"
      schema={schema}
      start={start}
      text="An address and port that accepts HTTP connections."
      notice={(state) =>
        listener !== null && <DisconnectWarning state={state} listener={listener} />
      }
      after={({ form }) => ({
        engine: listener !== null && form.isDirty("engine") && <ReopenWarning />,
      })}
    />
  );
}

const ReopenWarning = () => (
  <Alert color="yellow" title="The listener is opened again">
    Saving closes the idle connections of this listener; requests in progress end normally.
  </Alert>
);

interface WarningProps {
  readonly state: ObjectFormState;
  readonly listener: Read<"listeners">;
}

/** Saving may cut the connection of this page itself. */
function DisconnectWarning({ state: { form }, listener }: WarningProps) {
  if (!isOwnListener(listener, location)) return null;
  const changed = Object.fromEntries(
    Object.keys(form.values).map((name) => [name, form.isDirty(name)]),
  );
  return mayDisconnect(listener, changed, location) ? (
    <Alert color="red" title="This change may disconnect you" mb="md" role="alert">
      This page was probably opened through this listener. After saving, the listener may no longer
      respond at {location.host}. Make sure that you can reach the gateway at another address.
    </Alert>
  ) : (
    <Alert color="yellow" title="This page uses this listener" mb="md">
      Changing its address, port or protocol, or deleting it, may disconnect you.
    </Alert>
  );
}
