// Consumers: which list or form to open.
import { ResourceLoader } from "../../parts/form-page.tsx";
import type { PageProps } from "../../pages.ts";
import { ConsumerForm } from "./consumer-form.tsx";
import { ConsumerList } from "./consumer-list.tsx";

export default function ConsumersPage({ id }: PageProps) {
  if (id === null) return <ConsumerList />;
  return (
    <ResourceLoader resource="consumers" id={id}>
      {(start) => <ConsumerForm key={id} {...start} />}
    </ResourceLoader>
  );
}
