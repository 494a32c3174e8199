// Applications: the list, the wizard for new ones, and the page of a stored one.
import { ResourceLoader } from "../../parts/form-page.tsx";
import type { PageProps } from "../../pages.ts";
import { ApplicationForm } from "./application-form.tsx";
import { ApplicationList } from "./application-list.tsx";
import { ApplicationReady } from "./application-ready.tsx";
import { ApplicationWizard } from "./application-wizard.tsx";

export default function ApplicationsPage({ id, part }: PageProps) {
  if (id === null) return <ApplicationList />;
  if (part === "ready") return <ApplicationReady id={id} />;
  return (
    <ResourceLoader resource="applications" id={id}>
      {({ source, template }) =>
        source === null ? (
          <ApplicationWizard template={template} />
        ) : (
          <ApplicationForm key={id} source={source} />
        )
      }
    </ResourceLoader>
  );
}
