// What a service changes in requests before a target gets them; knows no target.
import { Select, SimpleGrid, TextInput } from "@mantine/core";
import { FoldedSection } from "../../parts/folded-section.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";

const HOSTS = [
  { value: "preserve", label: "Host of the client's request" },
  { value: "target", label: "Host of the target" },
  { value: "name", label: "Custom" },
];

export function UpstreamFields({ form }: ServiceFieldsProps) {
  const { host_header: host, path } = form.values;
  const kind = host === "preserve" || host === "target" ? host : "name";
  const which = kind === "preserve" ? "the client's" : kind === "target" ? "the target's" : host;
  return (
    <FoldedSection
      title="Upstream request"
      text="The path and the Host header that targets receive."
      summary={`Path ${path === "" ? "unchanged" : `prefixed with ${path}`}, Host header ${which}.`}
      fields={["path", "host_header"]}
      errors={form.errors}
    >
      <TextInput
        label="Path"
        description="Prefix for each request's path: with /app, a request for /cart becomes /app/cart"
        placeholder="/"
        {...form.getInputProps("path")}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Select
          label="Host header"
          description="Most applications need the client's"
          data={HOSTS}
          allowDeselect={false}
          value={kind}
          onChange={(next) =>
            form.setFieldValue("host_header", next === "name" ? "" : (next ?? ""))
          }
        />
        {kind === "name" && (
          <TextInput
            label="Custom Host header"
            description="For applications that respond to one name only"
            placeholder="app.internal"
            {...form.getInputProps("host_header")}
          />
        )}
      </SimpleGrid>
    </FoldedSection>
  );
}
