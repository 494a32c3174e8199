// Settings fields for the nodes of a fleet.
import { SimpleGrid } from "@mantine/core";
import { DurationField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import type { SettingsFieldsProps } from "./settings-page.tsx";

export function FleetFields({ form }: SettingsFieldsProps) {
  return (
    <FoldedSection
      title="Fleet"
      text="Nodes that are away, or cut off from the database of their fleet. Without effect on a gateway without a fleet."
      fields={["fleet"]}
      errors={form.errors}
    >
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DurationField
          label="Sessions are valid for"
          description="Time without the database after which a node accepts no sessions here; tokens stay valid. 0: no limit"
          unit="ms"
          {...form.getInputProps("fleet.max_stale_sessions")}
        />
        <DurationField
          label="Ready for"
          description="Time without the database after which /readyz of a node responds with 503. 0: always ready"
          unit="ms"
          {...form.getInputProps("fleet.max_stale")}
        />
        <DurationField
          label="Prepared for a return for"
          description="Time for which the log keeps what a node that is away lacks, and what its version does not know is refused"
          unit="ms"
          {...form.getInputProps("fleet.absent_after")}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}
