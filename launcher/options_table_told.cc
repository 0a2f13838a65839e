// What a job leaves for programs, and what hvdrun says of itself.
#include "launcher/options_table_parts.h"

namespace hvd {

std::vector<OptionSpec> timeline_options() {
  return {
      {.id = OptionId::kTimelineFilename,
       .group = OptionGroup::kTimeline,
       .names = {"--timeline-filename"},
       .argument = "FILE",
       .help = "What every rank did when, as one Chrome trace that Perfetto opens, in FILE on this "
               "machine when the job has ended; for programs that use hvdrun's runtime",
       .variables = {"HVDRUN_TIMELINE_FILENAME", "HOROVOD_TIMELINE"},
       .is_file = true},
      {.id = OptionId::kTimelineSteps,
       .group = OptionGroup::kTimeline,
       .names = {"--timeline-steps"},
       .argument = "A-B",
       .help = "Only the steps A to B; default: all"},
      {.id = OptionId::kTimelineMaxMb,
       .group = OptionGroup::kTimeline,
       .names = {"--timeline-max-mb"},
       .argument = "N",
       .help = "Stop the timeline of a rank at N MiB; default: 256"},
      {.id = OptionId::kTimelineMarkCycles,
       .group = OptionGroup::kTimeline,
       .names = {"--timeline-mark-cycles"},
       .argument = "",
       .help = "Mark the start of each step in the timeline",
       .opposite = "--no-timeline-mark-cycles",
       .variables = {"HOROVOD_TIMELINE_MARK_CYCLES"}},
  };
}

std::vector<OptionSpec> record_options() {
  return {
      {.id = OptionId::kReport,
       .group = OptionGroup::kRecords,
       .names = {"--report"},
       .argument = "FILE",
       .help = "At the end write what became of the job, its ranks and nodes to FILE as JSON; - is "
               "the standard output",
       .is_file = true},
      {.id = OptionId::kEvents,
       .group = OptionGroup::kRecords,
       .names = {"--events"},
       .argument = "FILE",
       .help =
           "Write what happens to FILE as it happens, one JSON object a line; - is the standard "
           "output",
       .is_file = true},
  };
}

std::vector<OptionSpec> information_options() {
  return {
      {.id = OptionId::kVerbose,
       .group = OptionGroup::kInformation,
       .names = {"-v", "--verbose"},
       .argument = "",
       .help = "Tell what happens; -vv tells more",
       .repeat = Repeat::kEach},
      {.id = OptionId::kDryRun,
       .group = OptionGroup::kInformation,
       .names = {"--dry-run"},
       .argument = "",
       .help = "Print which ranks would run where, contact nothing, start nothing",
       .is_per_run = true},
      {.id = OptionId::kCheckBuild,
       .group = OptionGroup::kInformation,
       .names = {"-cb", "--check-build"},
       .argument = "",
       .help = "Print what this build of hvdrun can do",
       .is_per_run = true},
      {.id = OptionId::kVersion,
       .group = OptionGroup::kInformation,
       .names = {"-V", "--version"},
       .argument = "",
       .help = "Print the version",
       .is_per_run = true},
      {.id = OptionId::kHelp,
       .group = OptionGroup::kInformation,
       .names = {"-h", "--help"},
       .argument = "",
       .help = "Print this help",
       .is_per_run = true},
      {.id = OptionId::kMan,
       .group = OptionGroup::kInformation,
       .names = {"--man"},
       .argument = "",
       .help = "Print the manual page in roff",
       .is_hidden = true,
       .is_per_run = true},
      {.id = OptionId::kCompletion,
       .group = OptionGroup::kInformation,
       .names = {"--completion"},
       .argument = "SHELL",
       .help = "Print the completion for a shell",
       .choices = {"bash", "zsh", "fish"},
       .is_hidden = true,
       .is_per_run = true},
  };
}

}  // namespace hvd
