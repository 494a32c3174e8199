// What a service changes in requests before a target gets them; knows no target.
import { Select, SimpleGrid, TextInput } from "@mantine/core";
import { FoldedSection } from "../../parts/folded-section.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";

const HOSTS = [
  { value: "preserve", label: "The one that the visitor asked for" },
  { value: "target", label: "The target's own" },
  { value: "name", label: "Another name" },
];

export function UpstreamFields({ form }: ServiceFieldsProps) {
  const { host_header: host, path } = form.values;
  const kind = host === "preserve" || host === "target" ? host : "name";
  const which = kind === "preserve" ? "the visitor's" : kind === "target" ? "the target's" : host;
  return (
    <FoldedSection
      title="What targets see"
      text="The path and the Host header that requests arrive with."
      summary={`Path ${path === "" ? "as it is" : `below ${path}`}, Host header ${which}.`}
      fields={["path", "host_header"]}
      errors={form.errors}
    >
      <TextInput
        label="Path"
        description="Put before the path of each request: with /app, a request for /cart asks for /app/cart"
        placeholder="/"
        {...form.getInputProps("path")}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Select
          label="Host header"
          description="Most applications want the visitor's"
          data={HOSTS}
          allowDeselect={false}
          value={kind}
          onChange={(next) =>
            form.setFieldValue("host_header", next === "name" ? "" : (next ?? ""))
          }
        />
        {kind === "name" && (
          <TextInput
            label="Name in the Host header"
            description="For applications that answer to one name only"
            placeholder="app.internal"
            {...form.getInputProps("host_header")}
          />
        )}
      </SimpleGrid>
    </FoldedSection>
  );
}
