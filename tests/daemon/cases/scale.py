# SPDX-License-Identifier: BSD-3-Clause
"""Ten thousand VMs. tests/daemon/bench has the figures; here are bounds that only a blunder breaks."""

import resource

import wire
from vpmud import Vpmud, eventually, machine, new_uuid

VMS, PROCESSORS, VCPUS = 10000, 512, 64


def many(results):
    """10,000 VMs of 64 vCPUs on 512 processors, under 200 MiB, at a cost that does not grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < VMS + 200:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (VMS + 200, VMS + 200))
        except ValueError:
            results.skip(f"{hard} descriptors are too few for {VMS} connections")
            return
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (VMS + 200, hard))
    with Vpmud(machine(processors=PROCESSORS)) as daemon:
        vms = grow(daemon, [], VMS)
        rss = daemon.rss_kib()
        results.check(f"{VMS} VMs in {rss / 1024:.0f} MiB", rss < 200 * 1024)
        results.equal("all are in the books", daemon.scrape()['vpmud_leases{state="live"}'], VMS)
        for vm in vms:
            vm.close()
        eventually(lambda: not daemon.ask("status")["leases"]["live"], "all is given back")


def processors_of(number):
    first = number * 7 % (PROCESSORS - VCPUS)
    return range(first, first + VCPUS)


def grow(daemon, vms, count):
    for number in range(len(vms), count):
        vm = daemon.vm(f"vm{number}", new_uuid())
        vm.acquire(4, fixed=7, processors=processors_of(number))
        vms.append(vm)
    return vms


CASES = [many]
