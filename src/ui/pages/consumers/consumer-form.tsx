// The form of a consumer, with its credentials and plugins; knows no secret.
import { Alert } from "@mantine/core";
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Read } from "../../api/resources.ts";
import type { FormStart } from "../../parts/form-page.tsx";
import { ObjectForm } from "../../parts/object-form.tsx";
import { StatusBadge } from "../../parts/status.tsx";
import { ConsumerPlugins } from "./consumer-plugins.tsx";
import { CredentialsSection } from "./credentials-section.tsx";

const schema = formSchemaOf("consumers");

export const ConsumerForm = (start: FormStart<Read<"consumers">>) => (
  <ObjectForm
    resource="consumers"
    schema={schema}
    start={start}
    isClonable={false}
    text="A user or program that calls APIs behind the gateway."
    actions={({ enabled }) => !enabled && <StatusBadge state="disabled" />}
    notice={() =>
      start.source === null ? (
        <Alert color="blue" mb="md">
          Save first, then add credentials.
        </Alert>
      ) : (
        <CredentialsSection consumer={start.source.value} />
      )
    }
    below={(consumer) => consumer !== null && <ConsumerPlugins consumer={consumer} />}
  />
);
