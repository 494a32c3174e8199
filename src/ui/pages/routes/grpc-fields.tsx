// gRPC of a route: the services and methods that it matches, and limits of calls; knows no service.
import { Group, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { AddButton, DurationField, RemoveButton } from "../../parts/fields.tsx";
import { FoldedSection, SubHead } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import type { RouteFieldsProps } from "./route-form.tsx";
import { newMethod, type RouteValues } from "./route-values.ts";

export function GrpcFields({ form }: RouteFieldsProps) {
  return (
    <FoldedSection
      title="gRPC"
      text="Match by gRPC service and method, and limit calls."
      summary={summaryOf(form.values)}
      isOpenAtFirst={form.values.grpc_methods.length > 0}
      fields={["grpc_methods", "grpc_idle_timeout", "grpc_max_message_bytes"]}
      errors={form.errors}
    >
      <MethodFields form={form} />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DurationField
          label="Idle timeout of a call"
          description="Ends a call in which neither side sends anything. 0: no limit"
          unit="ms"
          {...form.getInputProps("grpc_idle_timeout")}
        />
        <NumberField
          label="Maximum message size"
          description="In either direction; messages may follow each other without limit. 0: no limit"
          empty={0}
          suffix=" bytes"
          {...form.getInputProps("grpc_max_message_bytes")}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}

function summaryOf({
  grpc_methods: methods,
  grpc_idle_timeout: idle,
  grpc_max_message_bytes: most,
}: RouteValues): string {
  const count =
    methods.length === 1 ? "1 method or service" : `${methods.length} methods or services`;
  return [
    methods.length === 0 ? "No methods" : count,
    idle === 0 ? "no idle timeout" : `idle timeout ${idle} ms`,
    most === 0 ? "any message size." : `messages up to ${most} bytes.`,
  ].join(", ");
}

function MethodFields({ form }: RouteFieldsProps) {
  const { grpc_methods: methods } = form.values;
  return (
    <Stack gap="xs" role="group" aria-label="gRPC methods">
      <SubHead
        title="Services and methods"
        text={
          methods.length === 0
            ? "Empty: the paths decide alone."
            : "One of them, or one of the paths, must match. An empty method is all methods of the service; an empty service is any."
        }
      />
      {methods.map((_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other key, and their inputs are controlled
        <Group key={index} gap={6} align="flex-start" wrap="nowrap">
          <Group gap={6} align="flex-start" style={{ flex: 1 }}>
            <TextInput
              aria-label={`gRPC service ${index + 1}`}
              placeholder="helloworld.Greeter"
              style={{ flex: "2 1 12rem" }}
              {...form.getInputProps(`grpc_methods.${index}.service`)}
              error={
                form.errors[`grpc_methods.${index}.service`] ?? form.errors[`grpc_methods.${index}`]
              }
            />
            <TextInput
              aria-label={`gRPC method ${index + 1}`}
              placeholder="SayHello"
              style={{ flex: "1 1 9rem" }}
              {...form.getInputProps(`grpc_methods.${index}.method`)}
            />
          </Group>
          <RemoveButton
            label={`Remove gRPC method ${index + 1}`}
            onClick={() => form.removeListItem("grpc_methods", index)}
          />
        </Group>
      ))}
      <AddButton
        label="Add a gRPC method"
        onClick={() => form.insertListItem("grpc_methods", newMethod)}
      />
    </Stack>
  );
}
